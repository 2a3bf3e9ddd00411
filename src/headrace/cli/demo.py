"""`headrace demo`: a broker at work. Clients write and read, it is killed, and everything is there."""

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Self

import click
from rich.console import Console
from rich.text import Text

from headrace import __version__
from headrace.cli.process import Refused
from headrace.cli.session import table
from headrace.client.admin import Admin, Topic
from headrace.client.records import BEGINNING, Reader, Record, Writer

TOPIC: Final = "orders"
PARTITIONS: Final = 3
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
PER_CODEC: Final = 4_000
DURING_KILL: Final = 20_000
CUSTOMERS: Final = 100
STOP_TIMEOUT_S: Final = 20


@click.command()
def demo() -> None:
    """Start a broker, write, read, kill -9 it amid a load, start it again and count: nothing is missing."""
    with tempfile.TemporaryDirectory(prefix="headrace-") as name:
        show = _Show()
        show.title(f"Headrace {__version__}: one broker, Kafka's clients, and a kill -9")
        with _Up(Path(name)) as up:
            show.step("started", f"headrace up --data {name} --port {up.port}", up.took)
            admin = Admin(up.bootstrap)
            made = admin.create_topic(TOPIC, partitions=PARTITIONS)
            show.step("created", f"topic {made.name} with {len(made.partitions)} partitions")
            written = _produce(show, up)
            _consume(show, up, written)
            written |= _produce_through_a_crash(show, up)
            _consume(show, up, written)
            _show_topic(show, Admin(up.bootstrap).describe_topic(TOPIC), up.data)
            began = time.perf_counter()
            up.stop()
            show.step("stopped", "cleanly: the next start takes no scan", time.perf_counter() - began)
        show.end("Try it: headrace up --data DIR, and any Kafka client at 127.0.0.1:9092.")


class _Show:
    """Lines of what was done, and how long it took."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)

    def title(self, text: str) -> None:
        self._console.print(Text(f"\n{text}\n", style="bold"))

    def step(self, verb: str, what: str, seconds: float | None = None) -> None:
        took = "" if seconds is None else f"  {seconds:.2f} s"
        self._console.print(
            Text.assemble((f"  {verb:<10}", "bold green"), " ", what, (took, "cyan")), soft_wrap=True
        )

    def draw(self, topic: Topic, size: int) -> None:
        rows = [(part.index, part.leader, part.start_offset, part.next_offset) for part in topic.partitions]
        self._console.print()
        self._console.print(table(["partition", "leader", "start offset", "end offset"], rows))
        self._console.print(f"\n  {size:,} bytes on disk, in Kafka's own file format\n")

    def end(self, text: str) -> None:
        self._console.print(f"\n{text}")


class _Up:
    """`headrace up` as a process of its own."""

    def __init__(self, directory: Path) -> None:
        self.data = directory / "data"
        self.port = 0
        self.bootstrap = ""
        self.took = 0.0
        self._log = directory / "up.log"
        self._process: subprocess.Popen[str]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.kill()
        self._process.wait()

    def start(self) -> None:
        began = time.perf_counter()
        with self._log.open("a") as log:
            self._process = subprocess.Popen(  # noqa: S603  our own program
                [sys.executable, "-m", "headrace", "up", f"--data={self.data}", f"--port={self.port}"],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        with self._process.stdout as output:
            line = output.readline()
        if not line.startswith("ready "):
            raise Refused(f"headrace up did not start: {self._log.read_text()}")
        self.took = time.perf_counter() - began
        self.bootstrap = line.strip().partition("=")[2]
        self.port = int(self.bootstrap.rpartition(":")[2])

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(STOP_TIMEOUT_S)


def _produce(show: _Show, up: _Up) -> set[bytes]:
    began, values = time.perf_counter(), set()
    for codec in CODECS:
        writer = Writer(up.bootstrap, TOPIC, {"compression.type": codec, "linger.ms": 5})
        for number in range(PER_CODEC):
            value = f"{codec} {number}".encode()
            values.add(value)
            writer.write(Record(key=_customer(number), value=value))
        writer.flush()
    show.step(
        "produced",
        f"{len(values):,} records with confluent-kafka, {PER_CODEC:,} for each of {', '.join(CODECS)}",
        time.perf_counter() - began,
    )
    return values


def _produce_through_a_crash(show: _Show, up: _Up) -> set[bytes]:
    """One idempotent producer goes on writing while the broker is killed and started again."""
    options: dict[str, str | int] = {"enable.idempotence": "true", "reconnect.backoff.max.ms": 200}
    writer = Writer(up.bootstrap, TOPIC, options)
    values = [f"crash {number}".encode() for number in range(DURING_KILL)]
    began = time.perf_counter()
    with _killed_meanwhile(up) as killed:
        for number, value in enumerate(values):
            writer.write(Record(key=_customer(number), value=value))
            if number == DURING_KILL // 2:
                killed.set()
    writer.flush()
    show.step("killed", "the broker with SIGKILL, while an idempotent producer was writing")
    show.step("restarted", "headrace up on the same directory", up.took)
    show.step("produced", f"{writer.receipt.records:,} records across the crash", time.perf_counter() - began)
    return set(values)


@contextmanager
def _killed_meanwhile(up: _Up) -> Iterator[threading.Event]:
    """Kill and restart the broker in another thread, once the event is set."""
    now = threading.Event()

    def work() -> None:
        now.wait()
        up.kill()
        up.start()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield now
    finally:
        now.set()
        thread.join()


def _consume(show: _Show, up: _Up, expected: set[bytes]) -> None:
    began, values = time.perf_counter(), []
    with Reader(up.bootstrap, TOPIC, BEGINNING, stop_at_end=True) as reader:
        for records in reader.batches():
            values += [record.value for record in records]
    missing, twice = len(expected - set(values)), len(values) - len(set(values))
    if missing or twice:
        raise Refused(f"of {len(expected):,} records {missing} are missing and {twice} are there twice")
    show.step("consumed", f"{len(values):,} records: none missing, none twice", time.perf_counter() - began)


def _customer(number: int) -> bytes:
    return f"customer-{number % CUSTOMERS}".encode()


def _show_topic(show: _Show, topic: Topic, data: Path) -> None:
    size = 0
    for path in data.glob("broker-1/*/*.log"):
        with suppress(FileNotFoundError):
            size += path.stat().st_size
    show.draw(topic, size)
