"""What is done with an environment: a broker, a record written and read, and what the extra is for."""

import json
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from distribution.commands import COMMAND_S, Failed, environment, run

HAS_HTTP: Final = frozenset({"all", "http", "iceberg", "otel", "spark"})
VALUE: Final = "tea"
# Each program prints the number of records of the topic; the bootstrap servers are its argument.
_ARROW: Final = "import sys, headrace.arrow as a; print(a.read('orders', sys.argv[1]).read_all().num_rows)"
_POLARS: Final = "import sys, headrace.polars as p; print(p.scan('orders', sys.argv[1]).collect().height)"
_DUCKDB: Final = "import sys, headrace.duckdb as d; print(len(d.relation('orders', sys.argv[1]).fetchall()))"
_SPARK: Final = """
import sys
from headrace.spark.launcher import session
topic = session("dist").read.format("headrace").option("kafka.bootstrap.servers", sys.argv[1])
print(topic.option("subscribe", "orders").load().count())
"""
PROGRAMS: Final = {
    "all": (_ARROW, _POLARS, _DUCKDB, _SPARK),
    "arrow": (_ARROW,),
    "iceberg": ("import pyiceberg.catalog.sql; print(1)", _SPARK),
    "polars": (_POLARS,),
    "spark": (_SPARK,),
    "sql": (_DUCKDB,),
}
_SQL: Final = frozenset({"all", "sql"})
SECURITY: Final = HAS_HTTP | {"security"}


def use(bin_directory: Path, root: Path, extra: str) -> None:
    """Run a broker, write and read a record, and use what the extra brings; Failed if something is wrong."""
    headrace = bin_directory / "headrace"
    if not run([headrace, "--version"]).startswith("headrace, version"):
        raise Failed("headrace --version does not print its version")
    with _broker(headrace, root) as ready:
        target = ["--bootstrap", ready["bootstrap"]]
        run([headrace, *target, "produce", "orders", VALUE])
        _expect("consume", run([headrace, *target, "consume", "orders", "--exit-at-end"]), VALUE)
        if ("http" in ready) != (extra in HAS_HTTP):
            raise Failed(f"the ready line is {ready}")
        if "http" in ready:
            _ask_gateway(ready["http"])
        for program in PROGRAMS.get(extra, ()):
            printed = run([bin_directory / "python", "-c", program, ready["bootstrap"]])
            _expect("python -c", printed.strip().rpartition("\n")[2], "1")  # DuckDB may draw a progress bar
        if extra in _SQL:
            printed = run([headrace, *target, "sql", "--csv", "select value from orders"])
            _expect("sql", printed, f"value\n{VALUE}")
    if extra in SECURITY:
        run([headrace, "certs", "init", "--dir", root / "certs"])


def _expect(command: str, printed: str, expected: str) -> None:
    if printed.strip().replace("\r", "") != expected:
        raise Failed(f"{command} printed {printed!r:.300}, expected {expected!r}")


@contextmanager
def _broker(headrace: Path, root: Path) -> Iterator[Mapping[str, str]]:
    """Yield the addresses of the ready line of `headrace up`."""
    log = root / "up.log"
    command = [str(headrace), "up", "--data", str(root / "data"), "--port", "0", "--json"]
    with log.open("w") as stderr:
        up = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment())  # noqa: S603
    assert up.stdout is not None
    try:
        with _within(COMMAND_S, up.kill):
            line = up.stdout.readline()
        if not line:
            raise Failed(f"headrace up failed, or was not ready in time: {log.read_text()[-500:]}")
        yield json.loads(line)
    finally:
        up.terminate()
        with _within(COMMAND_S, up.kill):
            up.wait()
        up.stdout.close()
    if up.returncode:
        raise Failed(f"headrace up ended with status {up.returncode}: {log.read_text()[-500:]}")


@contextmanager
def _within(seconds: float, otherwise: Callable[[], object]) -> Iterator[None]:
    """Call `otherwise`, which ends what the block waits for, if the block takes longer."""
    timer = threading.Timer(seconds, otherwise)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _ask_gateway(url: str) -> None:
    for path, expected in (("/subjects", b"[]"), ("/ui", b"Headrace")):
        with urllib.request.urlopen(f"{url}{path}", timeout=COMMAND_S) as response:  # noqa: S310  our own gateway
            if expected not in response.read():
                raise Failed(f"{path} of the gateway does not contain {expected!r}")
