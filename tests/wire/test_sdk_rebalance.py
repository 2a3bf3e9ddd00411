"""Two headrace.Consumers in a group: partitions change hands, and every record is read."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from headrace import Consumer, TopicPartition
from wire.process import BrokerProcess
from wire.sdk import QUICK, fresh, numbers, topic_of

TIMEOUT_S = 30


class Member:
    """A consumer in a thread, which remembers what it was told and given."""

    def __init__(self, bootstrap: str, topic: str, group: str, **options: object) -> None:
        self.told: list[tuple[str, list[TopicPartition]]] = []
        self.found: list[bytes] = []
        self.assigned = threading.Semaphore(0)
        self._ending = threading.Event()
        self._consumer: Consumer = Consumer(
            bootstrap,
            topic,
            group=group,
            on_assigned=self._on_assigned,
            on_revoked=lambda places: self.told.append(("revoked", places)),
            **{**QUICK, **options},
        )
        self._thread = threading.Thread(target=self._run)

    def _on_assigned(self, places: list[TopicPartition]) -> None:
        self.told.append(("assigned", places))
        self.assigned.release()

    def _run(self) -> None:
        with self._consumer as consumer:
            while not self._ending.is_set():
                self.found.extend(message.value for message in consumer.read(idle_s=0.02))

    @contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._ending.set()
            self._thread.join(TIMEOUT_S)

    @property
    def assignment(self) -> list[TopicPartition]:
        return self._consumer.assignment


@pytest.mark.parametrize(
    "options",
    [
        {"heartbeat_interval_ms": 100},
        {"heartbeat_interval_ms": 100, "partition_assignment_strategy": "cooperative-sticky"},
        {"group_protocol": "consumer"},
    ],
    ids=["range", "cooperative", "consumer protocol"],
)
def test_a_second_member_takes_its_share_and_nothing_is_left_out(
    broker: BrokerProcess, options: dict[str, object]
) -> None:
    topic, group = topic_of(broker.bootstrap, numbers(600), partitions=4), fresh("group")
    everywhere = [TopicPartition(topic, index) for index in range(4)]
    one = Member(broker.bootstrap, topic, group, **options)
    with one.running():
        assert one.assigned.acquire(timeout=TIMEOUT_S)
        two = Member(broker.bootstrap, topic, group, **options)
        with two.running():
            waiting = threading.Event()
            for _ in range(TIMEOUT_S * 50):
                if len(one.assignment) == len(two.assignment) == 2:
                    break
                waiting.wait(0.02)
            assert sorted([*one.assignment, *two.assignment]) == everywhere
    with Consumer(broker.bootstrap, topic, group=group, **QUICK) as rest:
        found = [*one.found, *two.found, *(message.value for message in rest.read(stop_at_end=True))]
    assert sorted(set(found), key=int) == numbers(600)
    assert one.told[0][0] == "assigned"
    assert any(what == "revoked" and places for what, places in one.told)
