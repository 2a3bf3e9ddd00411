"""A load whose every record can be told apart: numbers without gaps, one sequence for each partition.

One idempotent producer with acks=all writes them, and one consumer reads as they come. As nobody else writes,
the number is the offset: what is lost, repeated or out of order shows at once.
"""

import threading
import time
from collections import defaultdict
from functools import partial
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from compat.kafka_tools.server import client_settings

PER_SECOND: Final = 600
STEP_S: Final = 0.005
REPORT_S: Final = 120  # for everything that was sent to be reported on
READ_S: Final = 60  # for everything that was acknowledged to be read
PADDING: Final = b" " + bytes(92)


class Gaps:
    """The longest time that nothing came, on any partition."""

    def __init__(self) -> None:
        self._last: dict[int, float] = {}
        self.longest = 0.0

    def came(self, partition: int) -> None:
        now = time.monotonic()
        self.longest = max(self.longest, now - self._last.get(partition, now))
        self._last[partition] = now


class Writer:
    """A thread that writes to all partitions in turn until it is told to stop."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._topic = topic
        self._partitions = partitions
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._producer: Any = Producer(
            client_settings(bootstrap) | {"enable.idempotence": True, "acks": "all", "linger.ms": 5}
        )
        self.sent: dict[int, int] = defaultdict(int)
        self.offsets: dict[int, dict[int, int]] = defaultdict(dict)  # by partition: number to offset
        self.problems: list[str] = []
        self.gaps = Gaps()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Write no more, and wait for the last report."""
        self._stopping.set()
        self._thread.join()

    def acknowledged(self, partition: int) -> int:
        return len(self.offsets[partition])

    def _run(self) -> None:
        began, written = time.monotonic(), 0
        try:
            while not self._stopping.is_set():
                while written < (time.monotonic() - began) * PER_SECOND:
                    self._write(written % self._partitions)
                    written += 1
                self._producer.poll(STEP_S)
            left = self._producer.flush(REPORT_S)
            if left:
                self.problems.append(f"{left} records are not reported on")
        except Exception as error:  # noqa: BLE001  a thread that dies must not go unnoticed
            self.problems.append(f"the producer gave up: {error!r}")

    def _write(self, partition: int) -> None:
        number = self.sent[partition]
        self._producer.produce(
            self._topic,
            b"%d" % number + PADDING,
            partition=partition,
            on_delivery=partial(self._reported, partition, number),
        )
        self.sent[partition] = number + 1

    def _reported(self, partition: int, number: int, error: Any, message: Any) -> None:
        if error is not None:
            self.problems.append(f"record {number} of partition {partition} failed: {error}")
            return
        self.offsets[partition][number] = message.offset()
        self.gaps.came(partition)


class Reader:
    """A thread that reads all partitions from their beginning until it has all that was written."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._consumer: Any = Consumer(
            client_settings(bootstrap) | {"group.id": "checked", "enable.auto.commit": False}
        )
        self._consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(partitions)])
        self.numbers: dict[int, list[int]] = defaultdict(list)  # by partition, in the order they came
        self.problems: list[str] = []
        self.gaps = Gaps()

    def start(self) -> None:
        self._thread.start()

    def stop(self, written: dict[int, int]) -> None:
        """Read on until there are so many of each partition."""
        deadline = time.monotonic() + READ_S
        while any(len(self.numbers[each]) < count for each, count in written.items()):
            if time.monotonic() > deadline:
                self.problems.append(f"not all of {written} was read within {READ_S} s")
                break
            time.sleep(0.01)
        self._stopping.set()
        self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            message = self._consumer.poll(0.1)
            if message is None or message.error() is not None:
                continue  # brokers that are away are the point of it
            partition, number = message.partition(), int(message.value().partition(b" ")[0])
            seen = self.numbers[partition]
            if not len(seen) == number == message.offset():
                self.problems.append(
                    f"partition {partition}: {number} at offset {message.offset()} came as the {len(seen)}th"
                )
            seen.append(number)
            self.gaps.came(partition)


def problems(writer: Writer, reader: Reader) -> list[str]:
    """What was lost, repeated or out of order, once both have stopped."""
    found = writer.problems + reader.problems
    for partition, count in writer.sent.items():
        wrong = {number: offset for number, offset in writer.offsets[partition].items() if number != offset}
        if wrong:
            found.append(f"partition {partition}: acknowledged at other offsets than written: {wrong}")
        if reader.numbers[partition] != list(range(count)):
            found.append(f"partition {partition}: {count} written, {len(reader.numbers[partition])} read")
    return found
