"""Conversations with Headrace alone, for tests that need no Apache Kafka to know the right answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compat.group_conversations.brokers import ALIKE
from compat.group_conversations.talk import Talk
from compat.group_conversations.topics import prepare
from headrace.protocol.errors import ErrorCode
from wire.process import BrokerProcess


@contextmanager
def broker_for_groups(root: Path) -> Iterator[BrokerProcess]:
    """A broker with small limits and short timeouts, whose log is clean in the end."""
    with BrokerProcess(root, ALIKE) as process:
        yield process
        assert process.running
        assert process.complaints() == []


def talk_with(broker: BrokerProcess, name: str, level: int = 10) -> Talk:
    """A conversation in which nothing is compared; its groups and topics are called after `name`."""
    return Talk(broker.bootstrap, name, level, prepare(broker.bootstrap))


def code(answer: Any) -> ErrorCode:
    """The error of an answer that has one for all of it."""
    return ErrorCode(answer.error_code)


def codes(answer: Any) -> dict[tuple[str, int], ErrorCode]:
    """What became of each partition of a commit, by topic and index. At v10 a topic's name is not told."""
    return {
        (topic.name, partition.partition_index): ErrorCode(partition.error_code)
        for topic in answer.topics
        for partition in topic.partitions
    }


def offsets(answer: Any) -> dict[tuple[str, int], int]:
    """What was fetched of one group, by topic and index."""
    (group,) = answer.groups
    return {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in group.topics
        for partition in topic.partitions
    }
