"""Queries on topics, with our connector and with Spark's own, and what they return in a form to compare."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from cluster.waiting import until

OURS: Final = "headrace"
THEIRS: Final = "kafka"
BOTH: Final = (OURS, THEIRS)
STREAM_TIMEOUT_S: Final = 90

Rows: TypeAlias = list[tuple[Any, ...]]
ForEachBatch: TypeAlias = Callable[[DataFrame, int], None]


@dataclass(kw_only=True)
class Stream:
    """A streaming query, and the rows of each of its batches, as they came."""

    query: StreamingQuery
    batches: dict[int, Rows] = field(default_factory=dict)

    def rows(self) -> Rows:
        return in_order(row for batch in list(self.batches.values()) for row in batch)

    def finish(self) -> "Stream":
        """Wait until a query that reads what is there has done so; its error is raised."""
        assert self.query.awaitTermination(STREAM_TIMEOUT_S), f"{self.query.name} has not ended"
        return self

    def await_rows(self, count: int) -> Rows:
        """All rows, once there are `count` of them."""

        def look() -> bool:
            error = self.query.exception()
            if error is not None:
                raise error
            return len(self.rows()) >= count

        until(f"{count} rows have come", look, timeout_s=STREAM_TIMEOUT_S)
        return self.rows()

    def progress(self) -> list[dict[str, Any]]:
        """What Spark says of the only source, for each batch that had rows."""
        reports = [json.loads(each.json)["sources"][0] for each in self.query.recentProgress]
        return [each for each in reports if each["numInputRows"]]


class Queries:
    """Options are given as Spark names them; those with a dot in a mapping."""

    def __init__(self, spark: SparkSession, bootstrap: str, root: Path) -> None:
        self.spark = spark
        self.bootstrap = bootstrap
        self._root = root

    def options(self, options: dict[str, Any]) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.bootstrap} | {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in options.items()
        }

    # -- batch ---------------------------------------------------------------------------------

    def table(self, connector: str, schema: str | None = None, **options: Any) -> DataFrame:
        reader = self.spark.read.format(connector).options(**self.options(options))
        return (reader if schema is None else reader.schema(schema)).load()

    def rows(self, connector: str, **options: Any) -> Rows:
        return in_order(self.table(connector, **options).collect())

    def same(self, **options: Any) -> Rows:
        """The rows, which must be the same with both, as must be the columns."""
        ours, theirs = (self.table(each, **options) for each in BOTH)
        assert ours.schema == theirs.schema
        found = in_order(ours.collect())
        assert found == in_order(theirs.collect())
        return found

    # -- streams -------------------------------------------------------------------------------

    def stream(
        self,
        connector: str,
        *,
        name: str = "",
        now: bool = True,
        each: ForEachBatch | None = None,
        **options: Any,
    ) -> Stream:
        """Start a query that reads what is there and ends, or one that goes on; from the beginning.

        `each` is called with every batch, in place of keeping its rows.
        """
        given = self.options({"startingOffsets": "earliest"} | options)
        table = self.spark.readStream.format(connector).options(**given).load()
        batches: dict[int, Rows] = {}
        writer = (
            table.writeStream.foreachBatch(each or _keeps(batches))
            .option("checkpointLocation", str(self.checkpoint(connector, name)))
            .queryName(f"{name} {connector}")
        )
        trigger = {"availableNow": True} if now else {"processingTime": "100 milliseconds"}
        return Stream(query=writer.trigger(**trigger).start(), batches=batches)

    def checkpoint(self, connector: str, name: str) -> Path:
        return self._root / f"{name}-{connector}"

    def streams(self, **options: Any) -> tuple[Stream, Stream]:
        """The same query with ours and with theirs, at the same time."""
        return self.stream(OURS, **options), self.stream(THEIRS, **options)


def _keeps(batches: dict[int, Rows]) -> Callable[[DataFrame, int], None]:
    def keep(batch: DataFrame, number: int) -> None:
        batches[number] = [tuple(row) for row in batch.collect()]

    return keep


def in_order(rows: Any) -> Rows:
    """By topic, partition and offset; for columns chosen otherwise, by all of them."""
    return sorted((tuple(row) for row in rows), key=_order)


def _order(row: Sequence[Any]) -> Any:
    return row[2:5] if len(row) >= 7 else repr(row)
