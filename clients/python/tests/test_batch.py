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


@pytest.mark.parametrize(
    ("stated", "read"),
    [
        ("my docs", "my%20docs/"),
        ("my docs/../my docs/", "my%20docs/"),
        ("a [1].txt", "a%20%5B1%5D.txt"),
        ("my docs/**/x y*.md", "my%20docs/**/x y*.md"),
        ("*.txt", "*.txt"),
        ("new/", "new/"),
    ],
)
def test_a_path_is_read_as_the_program_reads_it(
    stated: str, read: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my docs").mkdir()
    (tmp_path / "a [1].txt").write_text("A text.")
    monkeypatch.chdir(tmp_path)
    root = tmp_path.as_uri() + "/"
    assert tidegate._batch._source(stated) == f"{root}{read}"
    assert tidegate._batch._source(f"{tmp_path}/{stated}") == f"{root}{read}"
    assert tidegate._batch._source("/*.md") == "file:///*.md"
    assert tidegate._batch._source("s3://b/p/*.md") == "s3://b/p/*.md"


def test_only_what_is_stated_goes_into_a_batch(tmp_path: Path) -> None:
    places = {"source": tmp_path.as_uri() + "/", "output": (tmp_path / "out").as_uri()}
    embeds = started(tmp_path, model="openai:text-embedding-3-small", task="embed", dimensions=256)
    asked = {"model": "openai:text-embedding-3-small", "task": "embed", "dimensions": 256}
    assert embeds == places | asked, "nobody follows instructions here, and a worker refuses them"
    routed = started(tmp_path, route="default", messages=[{"role": "user", "content": "Summarise."}])
    assert routed == places | {"route": "default", "messages": [{"role": "user", "content": "Summarise."}]}
    usual = started(tmp_path, instructions="Summarise.", model="openai:m", lane="batch")
    assert usual == places | {"instructions": "Summarise.", "model": "openai:m", "lane": "batch"}
