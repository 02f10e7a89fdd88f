"""What is read of an output, without any server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import ROOT, Simulator

import tidegate


def written(folder: Path, name: str, *rows: dict[str, Any]) -> None:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def test_the_parts_are_read_in_order_else_the_whole(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(tidegate.results(tmp_path))
    written(tmp_path, "results.jsonl", {"id": "whole"})
    results = tidegate.results(tmp_path)
    assert [row["id"] for row in results] == ["whole"]
    written(tmp_path, "results/part-00001.jsonl", {"id": "b"})
    written(tmp_path, "results/part-00000.jsonl", {"id": "ä", "answer": "ü"}, {"id": "a2"})
    written(tmp_path, "results/a.md.json", {"id": "an object of its own"})
    assert [row["id"] for row in results] == ["ä", "a2", "b"]
    assert [row["id"] for row in results] == ["ä", "a2", "b"], "as often as one likes"
    assert [row["id"] for row in tidegate.results(tmp_path.as_uri() + "/")] == ["ä", "a2", "b"]
    assert results.failures() == []
    written(tmp_path, "failures.jsonl", {"id": "c", "type": "TooLarge"})
    assert results.failures() == [{"id": "c", "type": "TooLarge"}]


def test_a_batch_reads_its_own(tmp_path: Path) -> None:
    written(tmp_path, "results.jsonl", {"id": "a"})
    batch = tidegate.Batch(SimpleNamespace(id="x"), tmp_path.as_uri())  # type: ignore[arg-type]
    assert [row["id"] for row in batch.results()] == ["a"]


def test_an_object_store_is_read_by_its_address() -> None:
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    store.pipe("/bucket/out/results/part-00000.jsonl", b'{"id": "a"}\n{"id": "b"}\n')
    store.pipe("/bucket/out/failures.jsonl", b'{"id": "c"}\n')
    results = tidegate.results("memory://bucket/out/")
    assert [row["id"] for row in results] == ["a", "b"]
    assert results.failures() == [{"id": "c"}]


def test_a_table_needs_pyarrow(tmp_path: Path) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        pass
    else:
        pytest.skip("pyarrow is there")
    (tmp_path / "results").mkdir()
    (tmp_path / "results/part-00000.parquet").write_bytes(b"PAR1")
    with pytest.raises(ImportError, match=r"part-00000.parquet is Parquet.*pip install 'tidegate\[arrow\]'"):
        list(tidegate.results(tmp_path))


def stated(row: dict[str, Any]) -> dict[str, Any]:
    return {name: it for name, it in row.items() if it is not None}


def tables(large: Path, output: Path) -> Any:
    """What an environment with pyarrow, pandas and Polars reads of an output."""
    script = (
        "import json, sys, polars, tidegate\n"
        "results = tidegate.results(sys.argv[1])\n"
        "arrow, frame = results.arrow(), results.frame()\n"
        "print(json.dumps({'rows': list(results), 'arrow': arrow.to_pylist(), 'polars': polars.from_arrow(arrow).shape,\n"
        "    'pandas': [len(frame), sorted(frame.columns)]}))\n"
    )
    return json.loads(ran(large, script, output))


def ran(large: Path, script: str, *given: Path) -> bytes:
    told = subprocess.run(
        [large / "python", "-c", script, *given],
        env={**os.environ, "PYTHONPATH": str(Path(tidegate.__file__).parents[1])},
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    return told.stdout


def test_duckdb_asks_a_table(large: Path, tmp_path: Path) -> None:
    written(tmp_path, "results.jsonl", {"id": "a", "answer": "x"}, {"id": "b", "answer": "y", "cost_usd": 0.5})
    page = (ROOT / "clients/python/README.md").read_text("utf-8")
    (block,) = (it for it in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "duckdb" in it)
    for place in ("s3://bucket/out/", "out/"):
        block = block.replace(f'"{place}"', f'"{tmp_path}"')
    assert ran(large, f"{block}print(dear)") == b"a x\nb y\n[('b', 'y')]\n"


def test_tables_have_a_column_for_each_field(large: Path, tmp_path: Path) -> None:
    written(tmp_path, "results.jsonl", {"id": "a"}, {"id": "b", "cost_usd": 0.5})
    read = tables(large, tmp_path)
    assert read["arrow"] == [{"id": "a", "cost_usd": None}, {"id": "b", "cost_usd": 0.5}]
    assert (read["polars"], read["pandas"]) == ([2, 2], [2, ["cost_usd", "id"]])


def test_parquet_is_read_as_jsonl_is(
    large: Path,
    worker: Callable[[str, str], Path],
    simulator: Callable[[str], Simulator],
    temporal: str,
    prefix: str,
    tmp_path: Path,
) -> None:
    pytest.importorskip("temporalio")
    from temporalio.client import Client

    worker(f"{simulator('mean-output-tokens = 20').url}/v1", "rpm = 6000")
    source, output = tmp_path / "in", tmp_path / "out"
    source.mkdir()

    async def batch(documents: range, **fields: Any) -> None:
        for number in documents:
            (source / f"{number}.md").write_text(f"# Report {number}\n\nThe tide was {number} feet high.\n")
        fields |= {"model": "openai:m", "client": await Client.connect(temporal), "task_queue": prefix}
        started = await tidegate.run(source, output=output, instructions="Summarise.", **fields)
        assert (await started.done())["failed"] == 0

    asyncio.run(batch(range(3), results="parquet"))
    asyncio.run(batch(range(3, 5), results="jsonl"))
    parts = sorted(part.name for part in (output / "results").glob("part-*"))
    assert parts == ["part-00000.parquet", "part-00001.jsonl"]
    read = tables(large, output)
    # The object of each document holds the same as its row; a table does not tell null from absent.
    objects = [json.loads((output / f"results/{number}.md.json").read_text("utf-8")) for number in range(5)]
    assert sorted(map(stated, read["rows"]), key=lambda row: row["id"]) == list(map(stated, objects))
    assert [row["answer"] for row in read["arrow"]] == [row["answer"] for row in read["rows"]]
    assert read["polars"][0] == read["pandas"][0] == 5
