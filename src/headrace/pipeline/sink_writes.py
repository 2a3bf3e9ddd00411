"""How a batch is written to a sink: the one place that chooses between upsert, append and exactly-once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace.spark.batch import Batch
from headrace.spark.merge.merge import merge_batch
from headrace.spark.merge.upsert import Upsert
from headrace.spark.sink_options import SinkOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkWriter:
    """Writes the batches of a sink. It has no DataFrame, because Spark Connect pickles it."""

    format: str
    options: dict[str, str] = field(repr=False)  # may contain passwords
    upserts: Upsert | None  # the rules by which rows are merged into a table; None: they are appended

    def needs_batches(self, mode: str) -> bool:
        """Return whether a stream cannot be written by Spark itself, whose sinks in Python only append."""
        return self.upserts is not None or (mode != "append" and self.format == "headrace")

    def write(self, rows: "DataFrame", batch: Batch) -> bool:
        """Write a batch; return False if the sink had it and Spark has not computed its rows."""
        if self.upserts is not None:
            return merge_batch(self.format, self.options, self.upserts, rows, batch)
        options: Mapping[str, str] = self.options
        if self.format != "headrace" or SinkOptions.of(options).exactly_once:
            options = {**options, "txnAppId": batch.query_id, "txnVersion": str(batch.batch_id)}
        rows.write.format(self.format).options(**options).mode("append").save()
        return True
