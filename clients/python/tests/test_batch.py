"""What a batch is started with, without any server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import Simulator

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


@pytest.mark.parametrize("has_ended", [False, True])
def test_an_interrupt_leaves_nothing_running(has_ended: bool, tmp_path: Path) -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    async def ended() -> dict[str, Any]:
        return {"done": True}

    async def query(name: str) -> dict[str, Any]:
        return {"done": False}

    async def interrupted() -> int:
        handle = SimpleNamespace(id="batch", query=query, result=ended if has_ended else never)
        told = tidegate.Batch(handle, tmp_path.as_uri()).follow(every=0)  # type: ignore[arg-type]
        with pytest.raises(KeyboardInterrupt):
            async for progress in told:
                if progress["done"] or not has_ended:
                    raise KeyboardInterrupt
        await told.aclose()  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    assert asyncio.run(interrupted()) == 1


def test_a_batch_is_followed_from_before_there_is_a_worker(
    simulator: Callable[[str], Simulator], worker: Callable[[str, str], Path], temporal: str, prefix: str, tmp_path: Path
) -> None:
    from temporalio.client import Client

    provider = simulator("mean-output-tokens = 20\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.md").write_text("The tide was six feet high.")

    async def followed() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        client = await Client.connect(temporal)
        asked: dict[str, Any] = {"instructions": "Summarise.", "model": "openai:m", "task_queue": prefix}
        started = await tidegate.run(tmp_path / "in", output=tmp_path / "out", client=client, **asked)
        batch = await asyncio.wait_for(tidegate.follow(started.id, client=client), 5)
        assert batch.output == started.output
        following = asyncio.ensure_future(collected(batch))
        await asyncio.sleep(1)
        assert not following.done()
        worker(f"{provider.url}/v1", "rpm = 6000")
        told = await asyncio.wait_for(following, 90)
        # What has ended is told at once.
        again = await asyncio.wait_for(collected(await tidegate.follow(started.id, client=client)), 60)
        assert [row["id"] for row in batch.results()] == ["a.md"]
        return told, again

    told, again = asyncio.run(followed())
    assert told[-1]["done"] and told[-1] == again[-1]


async def collected(batch: tidegate.Batch) -> list[dict[str, Any]]:
    return [progress async for progress in batch.follow(every=0.2)]
