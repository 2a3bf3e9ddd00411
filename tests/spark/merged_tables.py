"""Delta and Iceberg tables that tests merge into, with the rows that readers other than Spark find there."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from headrace.spark.merge.delta import DeltaVersion
from headrace.spark.merge.iceberg import IcebergVersion
from headrace.spark.merge.table import TableVersion
from spark.upserting import delta, iceberg


def delta_rows(path: Path) -> list[dict[str, Any]]:
    """The rows by deltalake, which must be those of Polars, whose reader of Parquet is its own."""
    found = _ordered(DeltaTable(path).to_pyarrow_table().to_pylist())
    assert _ordered(pl.scan_delta(str(path)).collect().to_dicts()) == found
    return found


@contextmanager
def opened(root: Path, table: str = "shop.rows") -> Iterator[Table]:
    _, options = iceberg(root)
    given = {name.removeprefix("catalog."): value for name, value in options.items() if name != "table"}
    catalog = load_catalog("default", **given)
    yield catalog.load_table(table)
    catalog.close()


def iceberg_rows(root: Path, table: str = "shop.rows") -> list[dict[str, Any]]:
    with opened(root, table) as found:
        return _ordered(found.scan().to_arrow().to_pylist())


def _ordered(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["id"], row.get("__START_AT", 0)))


@dataclass(frozen=True, slots=True)
class Format:
    """How a table is declared, what it contains, and which class commits to it."""

    target: Callable[..., tuple[str, dict[str, str]]]
    rows: Callable[[Path], list[dict[str, Any]]]
    version: type[TableVersion]


FORMATS: Final = {
    "delta": Format(delta, delta_rows, DeltaVersion),
    "iceberg": Format(iceberg, iceberg_rows, IcebergVersion),
}
