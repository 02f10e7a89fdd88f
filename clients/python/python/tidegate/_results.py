"""What a batch has left in its output, whoever started it and wherever it lies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

if TYPE_CHECKING:
    import pandas
    import pyarrow


class Results:
    """The results of a batch that is done, one document at a time, as often as they are asked for.

    ``answer`` is the text, or the JSON where a schema was given. Parts in Parquet want ``tidegate[arrow]``; their rows
    come as those of JSONL do.
    """

    def __init__(self, output: str | Path) -> None:
        #: Where they lie.
        self.output = str(output).rstrip("/")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for name in self._parts() or self._whole():
            yield from _rows(name) if name.endswith(".parquet") else _lines(name)

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

        rows = list(self)
        # Rows leave out fields without a value, so the first one need not have all names.
        names = dict.fromkeys(name for row in rows for name in row)
        return pyarrow.table({name: [row.get(name) for row in rows] for name in names})

    def _parts(self) -> list[str]:
        """Batches of both formats may have sealed parts in one output; their numbers go on."""
        places = _matching(f"{self.output}/results/part-*")
        return sorted(place for place in places if place.endswith((".jsonl", ".parquet")))

    def _whole(self) -> list[str]:
        lines, table = f"{self.output}/results.jsonl", f"{self.output}/results.parquet"
        return _matching(lines) or _matching(table) or [lines]


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


def _rows(name: str) -> Iterator[dict[str, Any]]:
    """The lines that a table was made of: null stands for an absent field, ``other`` holds what has no column."""
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise ImportError(f"{name} is Parquet, which pyarrow reads: pip install 'tidegate[arrow]'") from error
    with _opened(name, "rb") as file:
        for batch in ParquetFile(file).iter_batches():
            for row in batch.to_pylist():
                other = json.loads(row.pop("other", None) or "{}")
                yield {field: _as_json(it) for field, it in row.items() if it is not None} | other


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value


def _opened(name: str, mode: str = "r") -> IO[Any]:
    path, encoding = _local(name), None if "b" in mode else "utf-8"
    if path is not None:
        return path.open(mode, encoding=encoding)
    import fsspec

    opened: IO[Any] = fsspec.open(name, mode, encoding=encoding).open()
    return opened
