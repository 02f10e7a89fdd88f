"""What a batch is started with, without any server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tidegate

pytest.importorskip("temporalio")


class Started:
    """Stands in the place of Temporal's client, and keeps what it was given."""

    given: dict[str, Any]

    async def start_workflow(self, name: str, given: dict[str, Any], *, id: str, task_queue: str) -> SimpleNamespace:
        assert (name, task_queue) == ("ProcessDocuments", "tidegate")
        self.given = given
        return SimpleNamespace(id=id)


def started(source: Path, **fields: Any) -> dict[str, Any]:
    client = Started()
    asyncio.run(tidegate.run(source, output=source / "out", client=client, **fields))  # type: ignore[arg-type]
    return client.given


def test_only_what_is_stated_goes_into_a_batch(tmp_path: Path) -> None:
    places = {"source": tmp_path.as_uri() + "/", "output": (tmp_path / "out").as_uri()}
    embeds = started(tmp_path, model="openai:text-embedding-3-small", task="embed", dimensions=256)
    asked = {"model": "openai:text-embedding-3-small", "task": "embed", "dimensions": 256}
    assert embeds == places | asked, "nobody follows instructions here, and a worker refuses them"
    routed = started(tmp_path, route="default", messages=[{"role": "user", "content": "Summarise."}])
    assert routed == places | {"route": "default", "messages": [{"role": "user", "content": "Summarise."}]}
    usual = started(tmp_path, instructions="Summarise.", model="openai:m", lane="batch")
    assert usual == places | {"instructions": "Summarise.", "model": "openai:m", "lane": "batch"}
