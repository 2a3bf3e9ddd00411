"""The same conversations about groups with Apache Kafka and with Headrace: the same answers.

What is compared, and what is not, is in `group_conversations/transcript.py`; what differs on purpose is kept
aside in the conversations, and listed in FINDINGS.md.
"""

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

import pytest

from compat.group_conversations import every
from compat.group_conversations.brokers import ALIKE, KAFKA
from compat.group_conversations.stories import held_with
from compat.group_conversations.topics import prepare
from compat.kafka_tools.java import KafkaJava
from compat.kafka_tools.server import KafkaServer
from wire.process import BrokerProcess

RUNS = count()


class Broker(NamedTuple):
    """Where it is, and the ids of its topics."""

    bootstrap: str
    topics: dict[str, bytes]


@pytest.fixture(scope="module")
def kafka(kafka_java: KafkaJava, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with KafkaServer(kafka_java, tmp_path_factory.mktemp("kafka-groups"), KAFKA) as server:
        yield Broker(server.bootstrap, prepare(server.bootstrap))


@pytest.fixture(scope="module")
def headrace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with BrokerProcess(tmp_path_factory.mktemp("headrace-groups"), ALIKE) as process:
        yield Broker(process.bootstrap, prepare(process.bootstrap))
        assert process.running
        assert process.complaints() == []


@pytest.mark.parametrize(("name", "level"), every.CASES)
def test_both_brokers_give_the_same_answers(headrace: Broker, kafka: Broker, name: str, level: int) -> None:
    run = next(RUNS)
    expected = held_with(kafka.bootstrap, kafka.topics, name, level, run=run)
    ours = held_with(headrace.bootstrap, headrace.topics, name, level, run=run)

    for number, (mine, theirs) in enumerate(zip(ours, expected, strict=False)):
        assert mine == theirs, "after:\n" + "\n".join(ours[max(0, number - 20) : number])
    assert len(ours) == len(expected)
