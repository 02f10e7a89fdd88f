"""What a batch has left in its output, whoever started it and wherever it lies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

if TYPE_CHECKING:
    import pandas
    import pyarrow


class Results:
    """The results of a batch that is done, one document at a time, as often as they are asked for.

    ``answer`` is the text, or the JSON where a schema was given.
    """

    def __init__(self, output: str | Path) -> None:
        #: Where they lie.
        self.output = str(output).rstrip("/")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for name in self._parts() or [f"{self.output}/results.jsonl"]:
            yield from _lines(name)

    def failures(self) -> list[dict[str, Any]]:
        """The documents that were given up, and why."""
        name = f"{self.output}/failures.jsonl"
        return list(_lines(name)) if _matching(name) else []

    def frame(self) -> pandas.DataFrame:
        """All as a table of pandas; wants ``tidegate[pandas]``."""
        import pandas

        return pandas.DataFrame(list(self))

    def arrow(self) -> pyarrow.Table:
        """All as a table of Arrow, from which Polars and DuckDB read; wants ``tidegate[arrow]``."""
        import pyarrow

        return pyarrow.Table.from_pylist(list(self))

    def _parts(self) -> list[str]:
        return sorted(_matching(f"{self.output}/results/part-*.jsonl"))


def results(output: str | Path) -> Results:
    """The results under an ``output``: a folder, ``file://``, or an object store's address (``s3://``, ``gs://``,
    ``az://``), which wants ``tidegate[stores]`` and that store's own package for fsspec (``s3fs``, ``gcsfs``, ``adlfs``)."""
    return Results(output)


def _local(place: str) -> Path | None:
    if "://" not in place:
        return Path(place)
    address = urlparse(place)
    return Path(unquote(address.path)) if address.scheme == "file" else None


def _matching(pattern: str) -> list[str]:
    path = _local(pattern)
    if path is not None:
        return [str(found) for found in path.parent.glob(path.name)]
    import fsspec

    store, inside = fsspec.core.url_to_fs(pattern)
    return [store.unstrip_protocol(found) for found in store.glob(inside)]


def _lines(name: str) -> Iterator[dict[str, Any]]:
    with _opened(name) as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def _opened(name: str) -> IO[str]:
    path = _local(name)
    if path is not None:
        return path.open(encoding="utf-8")
    import fsspec

    opened: IO[str] = fsspec.open(name, "r", encoding="utf-8").open()
    return opened
