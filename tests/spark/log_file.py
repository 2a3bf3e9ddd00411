"""Everything that Spark's Java logs, at level INFO, in a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession


@contextmanager
def java_log(spark: SparkSession, path: Path) -> Iterator[Path]:
    """Append all log events of the block to the file, besides what Spark prints."""
    jvm: Any = spark._jvm
    context = jvm.org.apache.logging.log4j.LogManager.getContext(False)
    appender = (
        jvm.org.apache.logging.log4j.core.appender.FileAppender.newBuilder()
        .setName(str(path))
        .withFileName(str(path))
        .build()
    )
    appender.start()
    root = context.getConfiguration().getRootLogger()
    before = root.getLevel()
    root.addAppender(appender, None, None)
    root.setLevel(jvm.org.apache.logging.log4j.Level.INFO)
    context.updateLoggers()
    try:
        yield path
    finally:
        root.removeAppender(str(path))
        root.setLevel(before)
        context.updateLoggers()
        appender.stop()
