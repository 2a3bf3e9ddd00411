"""A Spark session with settings for small clusters, on a Java that fits."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from headrace.spark.errors import SparkError
from headrace.system.java import NoJava, find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL: Final = "local[*]"
_STATE_STORE: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
# These loggers print every error with its Java stack trace, even if the error is handled.
_LOUD: Final = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
JAVA_END_S: Final = 10.0
# What Spark's PythonStreamingSourceRunner sets in the environment of a data source.
_STREAM_VARIABLES: Final = (
    *("SPARK_LOCAL_DIRS", "SPARK_AUTH_SOCKET_TIMEOUT"),
    *("SPARK_BUFFER_SIZE", "SPARK_PYTHON_RUNTIME"),
)
_S3A: Final = "spark.hadoop.fs.s3a"
_PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
_STORE: Final = "spark.sql.streaming.stateStore.providerClass"
_LOGGING: Final = Path(__file__).with_name("log4j2.properties")

# Spark adds a module, for linear algebra only, that a small Java lacks and that every Java warns about.
_WRAPPER: Final = """\
#!/bin/sh
for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec '{java}' "$@"
"""


def session(
    name: str, *, master: str = LOCAL, settings: Mapping[str, str] | None = None, log: Path | None = None
) -> "SparkSession":
    """Return the session of this process, created if there is none; `settings` override ours.

    With `log`, the stderr of Java and of the Python processes that it starts is appended to that file. In a
    program of spark-submit, its settings override ours and `settings`, and `master` is ignored.
    """
    if not (is_submitted() or is_connect(master)):
        prepare(master)
    try:
        from pyspark.logger import PySparkLogger  # noqa: PLC0415
        from pyspark.sql import SparkSession  # noqa: PLC0415  it takes a second, which few commands need
    except ImportError as error:
        raise SparkError("Spark is not installed: pip install 'headrace[spark]'") from error
    for loud in _LOUD:
        PySparkLogger.getLogger(loud).setLevel(logging.CRITICAL)
    builder = SparkSession.builder.appName(name)
    if is_connect(master):
        builder = builder.remote(master)
    elif not is_submitted():
        builder = builder.master(master)
    for setting, value in _all_settings(master, settings or {}).items():
        builder = builder.config(setting, value)
    with _stderr_to(log) if log is not None else nullcontext():
        spark = builder.getOrCreate()
    if not is_remote(spark):
        # These print a traceback when Java has ended, and py4j also when a batch fails: both are reported by
        # whoever waits for them. py4j has loggers, and also uses the root logger.
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        logging.getLogger().addFilter(lambda record: Path(record.pathname).parent.name != "py4j")
        spark.sparkContext._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]  # noqa: SLF001
    register_sources(spark)
    return spark


def stop(spark: "SparkSession") -> None:
    """Stop a session, also one whose Java has ended."""
    from py4j.protocol import Py4JError  # noqa: PLC0415

    try:
        spark.stop()
    except (Py4JError, OSError):
        if java_end(spark, wait_s=JAVA_END_S) is None:
            raise


def java_end(spark: "SparkSession", *, wait_s: float = 0.0) -> str | None:
    """Return how the Java of a session has ended, as a sentence; None if it runs, or is not ours.

    A process that was killed closes its connections a moment before it has ended, so that whoever has lost
    a connection waits for that.
    """
    gateway = None if is_remote(spark) else spark.sparkContext._gateway  # noqa: SLF001
    process = getattr(gateway, "proc", None)
    if process is None:
        return None
    try:
        status = process.wait(wait_s)
    except subprocess.TimeoutExpired:
        return None
    if status < 0:
        return f"process {process.pid}, the Java of Spark, was killed by {signal.Signals(-status).name}"
    return f"process {process.pid}, the Java of Spark, has ended with status {status}"


def is_submitted() -> bool:
    """Return whether this program was started by spark-submit, which has started Java already."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def is_connect(master: str) -> bool:
    """Return whether it is the URL of a Spark Connect server."""
    return master.startswith("sc://")


def is_remote(spark: "SparkSession") -> bool:
    """Return whether the session is one of Spark Connect, which has no Java in this process."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def _all_settings(master: str, own: Mapping[str, str]) -> dict[str, str]:
    """Return our settings and the user's: those that a running Spark can still change, if it is running."""
    if is_connect(master):  # the other settings are the server's
        return {name: defaults(master)[name] for name in (_PUSHDOWN, _STORE)} | dict(own)
    given: dict[str, str] = {}
    if is_submitted():
        from pyspark import SparkConf, SparkContext  # noqa: PLC0415

        SparkContext._ensure_initialized()  # noqa: SLF001  a conf without it does not see those of Java
        given = dict(SparkConf().getAll())
    ours = {**defaults(master), **s3a_settings()}
    return {name: value for name, value in {**ours, **own}.items() if name not in given}


def s3a_settings(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the endpoint and the region of s3a:// URLs, from the variables that other programs read.

    Spark reads credentials itself.
    """
    settings = {}
    if endpoint := variables.get("AWS_ENDPOINT_URL_S3") or variables.get("AWS_ENDPOINT_URL"):
        # Other servers than Amazon's rarely have a host name for each bucket.
        settings = {f"{_S3A}.endpoint": endpoint, f"{_S3A}.path.style.access": "true"}
    if region := variables.get("AWS_REGION") or variables.get("AWS_DEFAULT_REGION"):
        settings[f"{_S3A}.endpoint.region"] = region
    return settings


def register_sources(spark: "SparkSession") -> None:
    """Register our data sources. Spark also discovers them itself, but gives up on a busy machine.

    All queries of a session share one `java.util.HashMap`, the environment of the registered class. Every
    streaming query puts `_STREAM_VARIABLES` into it when it starts, without a lock. Two queries that insert a
    key at the same time leave the map with a wrong size, and each later task fails with an
    OptionalDataException. The keys are therefore inserted here: replacing the value of a key is harmless.
    """
    environment: dict[str, str] = {} if is_remote(spark) else spark.sparkContext.environment
    added = [variable for variable in _STREAM_VARIABLES if variable not in environment]
    environment.update(dict.fromkeys(added, ""))
    try:
        for name in ("pyspark_headrace", "pyspark_headrace_delta", "pyspark_headrace_iceberg"):
            spark.dataSource.register(import_module(name).DefaultSource)
    finally:
        for variable in added:
            del environment[variable]


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Redirect the stderr of processes that are started in the block."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 2)
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def prepare(master: str = LOCAL) -> None:
    """Set the variables by which Spark finds Java and this Python, unless they are set."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        home = spark_home()
        if home is not None:
            os.environ["SPARK_HOME"] = str(home)
    os.environ.setdefault("PYTHONSAFEPATH", "1")  # a user's numbers.py must not hide Python's module
    try:
        java = find_java("Spark")
    except NoJava as error:
        raise SparkError(str(error)) from error
    # Its bin/java runs `java` without the module that Spark adds.
    java_home = cache_directory() / f"java{str(java.resolve()).replace('/', '-')}"
    write_program(java_home / "bin" / "java", _WRAPPER.format(java=java))
    os.environ["JAVA_HOME"] = str(java_home)


def defaults(master: str) -> dict[str, str]:
    """Return settings for a small cluster, or for one machine."""
    cores = os.cpu_count() or 2
    found = {
        "spark.sql.shuffle.partitions": str(max(2, cores)),  # 200 would keep two cores busy with nothing
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        "spark.python.daemon.module": "headrace.spark.daemon",
        "spark.python.unix.domain.socket.enabled": "true",  # between Java and Python: a third faster
        _PUSHDOWN: "true",  # sources may see filters
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        _STORE: _STATE_STORE,
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING}",
    }
    if master.startswith("local"):
        found["spark.driver.host"] = "127.0.0.1"
    return found


def spark_home() -> Path | None:
    """Return a directory with links to PySpark's own, but without its archive; None if it has none.

    Java puts python/lib/pyspark.zip into the PYTHONPATH of every Python process that it starts. The archive
    has no byte code, so imports take a second more. That is too much on a busy machine: Spark gives a process
    ten seconds to connect. Without the archive, Python imports the installed package.
    """
    spec = find_spec("pyspark")
    if "SPARK_HOME" in os.environ or spec is None or spec.origin is None:
        return None
    home = Path(spec.origin).resolve().parent
    if not (home / "python" / "lib" / "pyspark.zip").is_file():
        return None
    links = cache_directory() / f"spark{str(home).replace('/', '-')}"
    for name in ("bin", "jars", "sbin", "conf", "python/pyspark"):
        link = links / name
        if (home / name).is_dir() and link.resolve() != home / name:
            link.parent.mkdir(parents=True, exist_ok=True)
            beside = link.with_name(f"{link.name}-{os.getpid()}")
            beside.symlink_to(home / name)
            beside.rename(link)  # atomic: another process may be starting Spark, too
    return links


def cache_directory() -> Path:
    """Return the directory of small programs that we write for Spark, in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace"


def write_program(path: Path, text: str) -> None:
    """Create an executable file with that text, unless it exists."""
    if path.is_file() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}-{os.getpid()}")
    beside.write_text(text)
    beside.chmod(0o755)
    beside.rename(path)  # atomic: another process may be starting Spark, too
