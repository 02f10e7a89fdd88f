"""What is read of an output, without any server."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

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


def test_arrow_has_a_column_for_each_field(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="40 MB that `make python` does not fetch")
    written(tmp_path, "results.jsonl", {"id": "a", "cost_usd": 0.5}, {"id": "b", "cost_usd": None})
    table = tidegate.results(tmp_path).arrow()
    assert table.column("id").to_pylist() == ["a", "b"]
    assert table.column("cost_usd").to_pylist() == [0.5, None]
