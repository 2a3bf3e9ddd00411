"""An idempotent producer with acks=all: keys in turn, numbers without gaps, every report in the ledger."""

import threading
import time
from functools import partial
from typing import Any, Final

from confluent_kafka import Producer

from cluster.ledger import Ledger, Record, Slot
from wire.confluent import settings

KEYS: Final = 24
PER_SECOND: Final = 150
FLUSH_S: Final = 90
STEP_S: Final = 0.05


class Writer:
    """A thread that writes until it is told to stop, and then until everything is reported."""

    def __init__(self, name: str, bootstrap: str, topic: str, ledger: Ledger) -> None:
        self._name = name
        self._topic = topic
        self._ledger = ledger
        self._numbers = dict.fromkeys((f"{name}-{key}" for key in range(KEYS)), 0)
        self._stopping = threading.Event()
        self._producer = Producer(
            settings(
                bootstrap,
                client_id=name,
                enable_idempotence=True,
                acks="all",
                linger_ms=5,
                batch_size=32_768,  # the segments are small, too
                request_timeout_ms=3000,  # a paused leader is given up after that
                socket_timeout_ms=4000,
                message_timeout_ms=300_000,
                topic_metadata_refresh_interval_ms=2000,
            )
        )
        self._thread = threading.Thread(target=self._run, name=name)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Write no more; what was sent must be reported."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        began, written = time.monotonic(), 0
        try:
            while not self._stopping.is_set():
                due = int((time.monotonic() - began) * PER_SECOND)
                while written < due:
                    self._write(written % KEYS)
                    written += 1
                self._producer.poll(STEP_S)
            left = self._producer.flush(FLUSH_S)
            if left:
                self._ledger.problems.append(f"{self._name}: {left} records are not reported on")
        except Exception as error:  # noqa: BLE001  a thread that dies must not go unnoticed
            self._ledger.problems.append(f"{self._name} gave up: {error!r}")
        self._ledger.sent.update(self._numbers)

    def _write(self, place: int) -> None:
        key = f"{self._name}-{place}"
        record = Record(key, self._numbers[key])
        try:
            self._producer.produce(self._topic, record.value, key, on_delivery=partial(self._report, record))
        except BufferError:
            return  # the broker has been away for long: this key's next turn will do
        self._numbers[key] += 1

    def _report(self, record: Record, error: Any, message: Any) -> None:
        if error is not None:
            self._ledger.fail(record, error)
        elif message.offset() is None:  # its request had no answer, a later one of the partition had
            self._ledger.acknowledge_somewhere(record)
        else:
            self._ledger.acknowledge(Slot(message.partition(), message.offset()), record)
