"""A Spark driver that copies one topic to another exactly once, until it is killed or has read everything."""

import sys
from pathlib import Path

from spark.session import spark_session


def run(root: Path, bootstrap: str, source: str, target: str, *, to_the_end: bool) -> None:
    root.mkdir(parents=True, exist_ok=True)
    with spark_session(root) as spark:
        table = (
            spark.readStream.format("headrace")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", source)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", 500)
            .load()
            .select("key", "value")
            .repartition(3)
        )
        writer = (
            table.writeStream.format("headrace")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", target)
            .option("exactlyOnce", "true")
            .option("checkpointLocation", str(root.parent / "checkpoint"))
        )
        trigger = {"availableNow": True} if to_the_end else {"processingTime": "0 seconds"}
        writer.trigger(**trigger).start().awaitTermination()


if __name__ == "__main__":
    directory, servers, end = sys.argv[1:]
    run(Path(directory), servers, "source", "target", to_the_end=end == "end")
