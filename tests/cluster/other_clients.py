"""Other people's idempotent producers, each a thread or a process that tells what was acknowledged."""

import asyncio
import itertools
import json
import subprocess
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

from aiokafka import AIOKafkaProducer

from cluster.ledger import Slot
from compat.kafka_tools.java import KafkaJava
from wire.kafka_python import KafkaProducer

KEYS: Final = 30
STEP_S: Final = 0.005  # between two records
STOP_S: Final = 60

Told = Callable[[Slot, int], None]
"""Told of an acknowledged record: where it is, and its number."""
Failed = Callable[[str], None]


class Client(Protocol):
    """Writes 0, 1, 2 and so on, each with one of the keys in turn, until it is told to stop."""

    def stop(self) -> None:
        """Return when everything that was sent is acknowledged or has failed."""


class _Thread(ABC):
    """A thread that writes in a way of its own."""

    def __init__(self, bootstrap: str, topic: str, told: Told, failed: Failed) -> None:
        self._bootstrap = bootstrap.split(",")
        self._topic = topic
        self._told = told
        self._failed = failed
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._safely, name=type(self).__name__)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(STOP_S)
        assert not self._thread.is_alive(), f"{self._thread.name} does not end"

    def _safely(self) -> None:
        try:
            self._write()
        except Exception as error:  # noqa: BLE001  a thread that dies must not go unnoticed
            self._failed(repr(error))

    @abstractmethod
    def _write(self) -> None:
        """Write until told to stop."""

    def _done(self, number: int, place: Any) -> None:
        self._told(Slot(place.partition, place.offset), number)


class KafkaPython(_Thread):
    def _write(self) -> None:
        producer = KafkaProducer(bootstrap_servers=self._bootstrap, enable_idempotence=True, acks="all")
        for number in itertools.count():
            if self._stopping.wait(STEP_S):
                break
            sent = producer.send(self._topic, b"%d" % number, key=b"%d" % (number % KEYS))
            sent.add_callback(lambda place, number=number: self._done(number, place))
            sent.add_errback(lambda error: self._failed(repr(error)))
        producer.close(timeout=STOP_S)


class Aiokafka(_Thread):
    def _write(self) -> None:
        asyncio.run(self._write_async())

    async def _write_async(self) -> None:
        producer = AIOKafkaProducer(bootstrap_servers=self._bootstrap, enable_idempotence=True, acks="all")
        await producer.start()
        sent: list[asyncio.Future[Any]] = []
        try:
            for number in itertools.count():
                if self._stopping.is_set():
                    break
                await asyncio.sleep(STEP_S)
                future = await producer.send(self._topic, b"%d" % number, key=b"%d" % (number % KEYS))
                future.add_done_callback(lambda done, number=number: self._took(number, done))
                sent.append(future)
            await asyncio.wait(sent, timeout=STOP_S)
        finally:
            await producer.stop()

    def _took(self, number: int, done: "asyncio.Future[Any]") -> None:
        error = done.exception()
        if error is None:
            self._done(number, done.result())
        else:
            self._failed(repr(error))


class Java:
    """`kafka-verifiable-producer`, Apache Kafka's own: a line of JSON for every record."""

    def __init__(
        self, java: KafkaJava, root: Path, bootstrap: str, *, topic: str, told: Told, failed: Failed
    ) -> None:
        config = root / "producer.properties"
        config.write_text("enable.idempotence=true\nretries=2147483647\n")
        command = java.command(
            "org.apache.kafka.tools.VerifiableProducer",
            *("--bootstrap-server", bootstrap, "--topic", topic, "--acks", "-1"),
            *("--throughput", "200", "--repeating-keys", str(KEYS), "--producer.config", str(config)),
        )
        with (root / "producer.err").open("wb") as complaints:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints, text=True
            )
        self._told = told
        self._failed = failed
        self._thread = threading.Thread(target=self._listen, name="java")
        self._thread.start()

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        finally:
            self._process.kill()
            self._process.wait()
            self._thread.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event: dict[str, Any] = json.loads(line) if line.startswith("{") else {"name": line}
            if event["name"] == "producer_send_success":
                self._told(Slot(event["partition"], event["offset"]), int(event["value"]))
            elif event["name"] == "producer_send_error":
                self._failed(line)
