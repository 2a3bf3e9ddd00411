"""The clients that make a load, and how they tell how far they are: lines of JSON on standard output."""

import json
import sys
import time
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import Consumer, Producer

from headrace.client.load.figures import Task

TELL_S: Final = 0.25
TIMEOUT_S: Final = 30.0
MOST_ON_THE_WAY: Final = 100_000  # records


class Teller:
    """Tells how far it is, a few times a second."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._told = self._began

    def begin(self) -> None:
        """Count from now: what came before was getting ready."""
        self._began = self._told = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def tell(self, records: int) -> None:
        if time.perf_counter() - self._told >= TELL_S:
            self._told = time.perf_counter()
            say(records=records, seconds=self.seconds)

    def end(self, records: int, **more: object) -> None:
        say(records=records, seconds=self.seconds, done=True, **more)


def say(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def producer_of(task: Task, options: Mapping[str, Any]) -> Producer:
    """A producer that sends as the task asks for."""
    return Producer(
        {
            "bootstrap.servers": task.bootstrap,
            "log_level": 0,
            "acks": task.acks,
            "compression.type": task.compression,
            "batch.size": 1_000_000,
            "message.max.bytes": 1_000_000_000,
            "queue.buffering.max.messages": 2 * MOST_ON_THE_WAY,
            "delivery.timeout.ms": int(TIMEOUT_S * 1000),
            **options,
        }
    )


def consumer_of(task: Task) -> Consumer:
    """A consumer that has nothing assigned yet."""
    return Consumer(
        {
            "bootstrap.servers": task.bootstrap,
            "log_level": 0,
            "group.id": "headrace-bench",  # librdkafka wants one; nothing is committed to it
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "queued.min.messages": 1_000_000,
            "fetch.message.max.bytes": 1_000_000,
        }
    )
