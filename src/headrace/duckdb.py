"""Topics as DuckDB relations: `headrace.duckdb.relation("orders")`. It needs `pip install 'headrace[sql]'`.

    headrace.duckdb.relation("orders").filter("partition = 0").aggregate("count(*)").fetchall()

DuckDB asks for the columns that a query uses, and passes its filters: those on topic, partition, offset and
timestamp make the read shorter.
"""

from collections.abc import Sequence
from typing import Unpack

try:
    import duckdb
    import pyarrow as pa  # noqa: F401
except ImportError as missing:
    raise ImportError(
        f"headrace.duckdb needs {missing.name}: pip install 'headrace[sql]'", name=missing.name
    ) from missing

from headrace.client.settings import Bootstrap
from headrace.tables.arrow.bounds import Bound
from headrace.tables.arrow.scan import ReadOptions, Scan
from headrace.tables.sql.dataset import TopicDataset

__all__ = ["TopicDataset", "relation"]


def relation(
    topic: str | Sequence[str],
    bootstrap: Bootstrap = None,
    *,
    connection: "duckdb.DuckDBPyConnection | None" = None,
    start: Bound = "earliest",
    end: Bound = "latest",
    **options: Unpack[ReadOptions],
) -> "duckdb.DuckDBPyRelation":
    """Return a topic, or several, as a relation of a connection, by default DuckDB's own.

    The other arguments are those of `headrace.arrow.read`.
    """
    found = Scan.of(topic, bootstrap, start=start, end=end, **options)
    return (connection or duckdb.default_connection()).from_arrow(TopicDataset(found))
