"""A Spark session for the tests: two cores, quiet, with the jars of Spark's own connector."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from headrace.spark.launcher import prepare, register_sources
from spark.jars import connector_jars

SETTINGS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.eventLog.compress": "false",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.rolling.enabled": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    # Queries of tests are short: to compile them, in Java or to machine code, costs more than it saves.
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stopTimeout": "30s",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
LOGGING: Final = """
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c: %m%n%ex{short}
"""


def event_log(root: Path) -> Path:
    """The directory of what a history server shows."""
    directory = root / "events"
    directory.mkdir(exist_ok=True)
    return directory


@contextmanager
def spark_session(root: Path) -> Iterator[SparkSession]:
    """The session; everything that Spark writes goes to `root`."""
    prepare()
    logging = root / "log4j2.properties"
    logging.write_text(LOGGING)
    builder = SparkSession.builder.master("local[2]").appName("headrace")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = (
        builder.config("spark.jars", ",".join(map(str, connector_jars())))
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={logging} {JAVA}")
        .config("spark.local.dir", str(root))
        .config("spark.eventLog.dir", event_log(root).as_uri())
        .config("spark.sql.warehouse.dir", str(root / "warehouse"))
        .getOrCreate()
    )
    register_sources(session)
    try:
        yield session
    finally:
        session.stop()
