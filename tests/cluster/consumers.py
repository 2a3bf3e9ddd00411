"""A member of a group that processes, then commits."""

import threading
import time
from collections.abc import Sequence
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from cluster.ledger import Ledger, Record, Slot
from wire.confluent import settings

COMMIT_EVERY_S: Final = 0.3
ASK_S: Final = 5.0
QUICK: Final = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "socket_timeout_ms": 4000,
    "fetch_wait_max_ms": 100,
    "topic_metadata_refresh_interval_ms": 2000,
}
CLASSIC: Final = {
    "session_timeout_ms": 6000,
    "heartbeat_interval_ms": 500,
}  # the broker's, in the other protocol


class Reader:
    """A thread that is a member of the group until it is told to stop."""

    def __init__(
        self, name: str, bootstrap: str, topic: str, group: str, ledger: Ledger, **options: Any
    ) -> None:
        self._name = name
        self._ledger = ledger
        self._stopping = threading.Event()
        self._next: dict[int, int] = {}  # processed and not committed
        self._consumer = Consumer(settings(bootstrap, client_id=name, group_id=group, **{**QUICK, **options}))
        self._consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked)
        self._topic = topic
        self._thread = threading.Thread(target=self._run, name=name)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            due = time.monotonic()
            while not self._stopping.is_set():
                for message in self._consumer.consume(500, timeout=0.1):
                    self._take(message)
                if time.monotonic() >= due:
                    self._commit()
                    due = time.monotonic() + COMMIT_EVERY_S
            self._commit()
            self._consumer.close()
        except Exception as error:  # noqa: BLE001  a thread that dies must not go unnoticed
            self._ledger.problems.append(f"{self._name} gave up: {error!r}")

    def _take(self, message: Any) -> None:
        if message.error() is not None:
            self._ledger.refuse(f"read: {message.error().name()}")
            return
        slot = Slot(message.partition(), message.offset())
        self._ledger.process(slot, Record.of(message.key(), message.value()))
        self._next[slot.partition] = slot.offset + 1

    def _commit(self) -> None:
        if not self._next:
            return
        wanted = [TopicPartition(self._topic, each, offset) for each, offset in self._next.items()]
        try:
            answers = self._consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException as error:
            self._ledger.refuse(f"commit: {error.args[0].name()}")
            return
        for answer in answers:
            if answer.error is None:
                self._ledger.commit(answer.partition, answer.offset)
                if self._next.get(answer.partition) == answer.offset:
                    del self._next[answer.partition]

    def _assigned(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        floor = self._ledger.committed()
        try:
            found = consumer.committed(list(partitions), timeout=ASK_S)
        except KafkaException as error:
            self._ledger.refuse(f"committed: {error.args[0].name()}")
            return
        for each in found:
            if each.error is None:
                self._ledger.saw_committed(each.partition, each.offset, floor, self._name)

    def _revoked(self, _consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        self._commit()
        for each in partitions:
            self._next.pop(each.partition, None)  # the next owner goes on where the last commit was
