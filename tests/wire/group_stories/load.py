"""Numbered records for every partition of a topic, for as long as a story takes."""

import itertools
import threading
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import Producer

from wire.confluent import settings
from wire.group_stories.reading import Place

PACE_S: Final = 0.02  # between records of one partition: the readers, in Python, must keep up
FLUSH_TIMEOUT_S: Final = 30


class Load:
    """A producer with acks=all in a thread of its own; leaving the block stops it, and all has arrived."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.acknowledged: dict[Place, dict[int, str]] = {
            Place(topic, number): {} for number in range(partitions)
        }
        self._topic = topic
        self._failures: list[str] = []
        self._stop = threading.Event()
        self._producer: Any = Producer(
            settings(bootstrap, acks="all", enable_idempotence=True, reconnect_backoff_ms=10)
        )
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        unsent = self._producer.flush(FLUSH_TIMEOUT_S)
        if kind is None:
            assert (unsent, self._failures) == (0, [])

    def ends(self) -> dict[Place, int]:
        """The offset after the last one of each partition; for when the load is over."""
        return {place: len(offsets) for place, offsets in self.acknowledged.items()}

    def _run(self) -> None:
        for number in itertools.count():
            if self._stop.wait(PACE_S):
                return
            for _, partition in self.acknowledged:
                value = f"{partition}:{number}"
                self._producer.produce(self._topic, value, partition=partition, on_delivery=self._delivered)
            self._producer.poll(0)

    def _delivered(self, error: object, message: Any) -> None:
        if error is None:
            place = Place(message.topic(), message.partition())
            self.acknowledged[place][message.offset()] = message.value().decode()
        else:
            self._failures.append(str(error))
