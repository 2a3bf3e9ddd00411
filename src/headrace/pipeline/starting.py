"""Starting one query: its mode, its sink, its checkpoint, and a count of the rows that it writes."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812

from headrace.pipeline.builder import Query
from headrace.pipeline.errors import PipelineError, in_words
from headrace.pipeline.parquet_files import claim_directory
from headrace.pipeline.paths import local_path, spark_url
from headrace.pipeline.progress import WRITTEN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


def start(query: Query, checkpoint: Path, *, to_the_end: bool) -> "StreamingQuery":
    """The query, on its way; PipelineError if Spark refuses it."""
    directory = local_path(query.options["path"]) if query.format == "parquet" else None
    if directory is not None:
        claim_directory(directory, checkpoint)
    counted = query.frame.observe(WRITTEN, F.count(F.lit(1)).alias("rows"))
    writer = (
        counted.writeStream.queryName(query.name)
        .option("checkpointLocation", spark_url(checkpoint))
        .outputMode(query.mode)
    )
    if query.mode != "append" and query.format == "headrace":
        # A Python sink of Spark's knows no other mode; a batch of it knows nothing of modes.
        writer = writer.foreachBatch(partial(_append, query))
    else:
        writer = writer.format(query.format).options(**query.options)
    if query.partition_by:
        writer = writer.partitionBy(*query.partition_by)
    trigger: dict[str, Any] = {"availableNow": True} if to_the_end else {"processingTime": query.every}
    try:
        return writer.trigger(**trigger).start()
    except Exception as error:
        raise PipelineError(f"{query.name}, to {query.label}: {in_words(error)}") from error


def _append(query: Query, frame: "DataFrame", _batch_id: int) -> None:
    frame.write.format(query.format).options(**query.options).mode("append").save()
