"""From `subscribe()` to the first record, for clients of three makers on an otherwise idle broker."""

import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from statistics import median
from typing import Any, Final

from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer

from compare.servers import Server
from compare.table import Figures
from compat.kafka_tools.java import find_kafka
from compat.kafka_tools.server import client_settings
from groups.coordinator import find
from groups.membership import Topic
from groups.progress import progress
from groups.table import Case

TIMEOUT_S: Final = 60
DELAY: Final = "group.initial.rebalance.delay.ms"
_groups: Final = (f"first-{number}" for number in count())


def confluent(server: Server, topic: str, protocol: str) -> float:
    settings = {"group.id": next(_groups), "auto.offset.reset": "earliest", "group.protocol": protocol}
    consumer: Any = Consumer(client_settings(server.bootstrap) | settings)
    try:
        start = time.perf_counter()
        consumer.subscribe([topic])
        message = consumer.poll(TIMEOUT_S)
        seconds = time.perf_counter() - start
        assert message is not None, f"no record after {TIMEOUT_S} s"
        assert message.error() is None, message.error()
        return seconds
    finally:
        consumer.close()


def kafka_python(server: Server, topic: str, _protocol: str) -> float:
    consumer: Any = KafkaConsumer(
        bootstrap_servers=server.bootstrap, group_id=next(_groups), auto_offset_reset="earliest"
    )
    try:
        start = time.perf_counter()
        consumer.subscribe([topic])
        arrived = consumer.poll(timeout_ms=TIMEOUT_S * 1000, max_records=1)
        seconds = time.perf_counter() - start
        assert arrived, f"no record after {TIMEOUT_S} s"
        return seconds
    finally:
        consumer.close()


def java(server: Server, topic: str, protocol: str) -> float:
    """The console consumer, from the start of its JVM, which takes most of it, to its first line."""
    command = find_kafka().command(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", server.bootstrap, "--topic", topic, "--group", next(_groups)),
        *("--from-beginning", "--max-messages", "1", "--timeout-ms", str(TIMEOUT_S * 1000)),
        *("--command-property", f"group.protocol={protocol}"),
    )
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as console:
        assert console.stdout is not None
        line = console.stdout.readline()
        seconds = time.perf_counter() - start
        _, complaints = console.communicate(timeout=TIMEOUT_S)
    assert line, complaints.decode()[-500:]
    return seconds


CLIENTS: Final[dict[str, tuple[Callable[[Server, str, str], float], tuple[str, ...]]]] = {
    "confluent-kafka": (confluent, ("classic", "consumer")),
    "kafka-python": (kafka_python, ("classic",)),
    "java": (java, ("classic", "consumer")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRecord:
    times: int

    def run(self, server: Server) -> Figures:
        find(server.address)
        topic = Topic.made(server, "first", 1).name
        producer: Any = Producer(client_settings(server.bootstrap))
        producer.produce(topic, b"here")
        assert producer.flush(TIMEOUT_S) == 0
        return {
            f"{name}, {protocol}: s": self._median(server, topic, client, name, protocol)
            for name, (client, protocols) in CLIENTS.items()
            for protocol in protocols
        }

    def _median(
        self,
        server: Server,
        topic: str,
        client: Callable[[Server, str, str], float],
        name: str,
        protocol: str,
    ) -> float:
        progress(f"{name}, {protocol}")
        client(server, topic, protocol)  # warms up both sides
        return median(client(server, topic, protocol) for _ in range(self.times))


def cases(*, quick: bool) -> Iterator[Case]:
    load = FirstRecord(times=3 if quick else 7)
    yield Case(name="subscribe() to first record, as shipped", run=load.run)
    yield Case(name="subscribe() to first record, initial delay 3 s", run=load.run, settings={DELAY: "3000"})
