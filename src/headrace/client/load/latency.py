"""How long records take, there and back: sent at an even pace, each with the moment it was sent."""

import threading
import time
from collections.abc import Callable
from struct import Struct
from typing import Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from headrace.background import BackgroundThread
from headrace.client.load.clients import TIMEOUT_S, Teller, consumer_of, producer_of
from headrace.client.load.figures import Task

POLL_S: Final = 0.1
LOOK_S: Final = 0.01
_MOMENT: Final = Struct(">q")
_WARMING_UP: Final = _MOMENT.pack(0)


class _Receiver:
    """Reads every partition on a thread of its own, and notes how long each record took."""

    def __init__(self, task: Task, consumer: Consumer) -> None:
        self.took_ms: list[float] = []
        self.warm: set[int] = set()  # partitions of which something has come
        self._consumer = consumer
        self._ended = threading.Event()
        self._thread = BackgroundThread(self._receive, name="load-receiver", stop=self._ended.set)
        ends = []
        for index in task.partitions:
            place = TopicPartition(task.topic, index)
            _, place.offset = consumer.get_watermark_offsets(place, timeout=TIMEOUT_S)
            ends.append(place)
        consumer.assign(ends)
        self._thread.start()

    def _receive(self) -> None:
        while not self._ended.is_set():
            message = self._consumer.poll(POLL_S)
            if message is None or message.error() is not None:
                continue
            now_ns = time.perf_counter_ns()
            (sent_ns,) = _MOMENT.unpack_from(message.value() or _WARMING_UP)
            if sent_ns:
                self.took_ms.append((now_ns - sent_ns) / 1e6)
            else:
                self.warm.add(message.partition() or 0)

    def end(self) -> None:
        self._ended.set()
        self._thread.join()
        self._consumer.close()


def measure(task: Task, teller: Teller) -> None:
    """Tell how long it took records to be acknowledged, and to be received."""
    acknowledged_ms: list[float] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            acknowledged_ms.append((message.latency() or 0.0) * 1000)

    producer = producer_of(task, {"linger.ms": 0})
    receiver = _Receiver(task, consumer_of(task))
    try:
        _warm_up(task, producer, receiver)
        padding = bytes(max(0, task.record_size - _MOMENT.size))
        teller.begin()
        sent = 0
        while teller.seconds < task.seconds:
            producer.poll(max(0.0, sent / task.rate - teller.seconds))
            if teller.seconds >= sent / task.rate:
                moment = _MOMENT.pack(time.perf_counter_ns())
                producer.produce(task.topic, moment + padding, on_delivery=delivered)
                sent += 1
            teller.tell(sent)
        producer.flush(TIMEOUT_S)
        _wait(lambda: len(receiver.took_ms) >= sent)
        teller.end(sent, received_ms=receiver.took_ms, acknowledged_ms=acknowledged_ms)
    finally:
        receiver.end()


def _warm_up(task: Task, producer: Producer, receiver: _Receiver) -> None:
    """Connections are made, and every partition is being read: that is not what is measured."""
    for index in task.partitions:
        producer.produce(task.topic, _WARMING_UP, partition=index)
    producer.flush(TIMEOUT_S)
    _wait(lambda: len(receiver.warm) == len(task.partitions))


def _wait(condition: Callable[[], bool]) -> None:
    """Until it is so; what has not come by then is missing in the figures."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(LOOK_S)
