"""When a member of a group has read everything."""

from confluent_kafka import OFFSET_BEGINNING, KafkaError, Message

from headrace.client.consumer.buffer import Buffer
from headrace.client.consumer.source import IDLE_AFTER_S, Source
from headrace.protocol.ids import TopicPartition

ONE, TWO = TopicPartition("orders", 1), TopicPartition("orders", 2)


class Polled:
    """A client that hands out one message after the other."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def poll(self, _timeout_s: float) -> Message | None:
        return self.messages.pop() if self.messages else None


class Member:
    """A source, and the clock that it goes by."""

    def __init__(self, *, incremental: bool, more_to_come: bool = False) -> None:
        self.now_s = 100.0
        self._client = Polled()
        self.source = Source(
            self._client,
            "broker:9092",
            Buffer(),
            start=OFFSET_BEGINNING,
            incremental=incremental,
            now_s=lambda: self.now_s,
        )
        self.source.more_to_come = more_to_come

    def reach_end(self, partition: TopicPartition) -> None:
        end = KafkaError(KafkaError._PARTITION_EOF)
        self._client.messages.append(
            Message(topic=partition.topic, partition=partition.partition, offset=7, error=end)
        )
        assert self.source.fetch(1) == []


def test_before_the_first_assignment_nothing_is_at_its_end() -> None:
    assert not Member(incremental=False).source.at_end
    assert not Member(incremental=True).source.at_end


def test_every_assigned_partition_has_to_come_to_its_end() -> None:
    member = Member(incremental=False)
    member.source.gained([ONE, TWO])
    member.reach_end(ONE)
    assert not member.source.at_end
    member.reach_end(TWO)
    assert member.source.at_end


def test_a_member_without_partitions_is_at_the_end() -> None:
    member = Member(incremental=False)
    member.source.gained([])
    assert member.source.at_end


def test_a_member_that_never_gets_an_assignment_is_idle_after_a_while() -> None:
    member = Member(incremental=True)
    member.now_s = 99.0 + IDLE_AFTER_S
    assert not member.source.at_end
    member.now_s = 100.0 + IDLE_AFTER_S
    assert member.source.at_end


def test_a_classic_rebalance_revokes_everything_and_is_not_the_end() -> None:
    member = Member(incremental=False)
    member.source.gained([ONE])
    member.source.lost([ONE])
    assert not member.source.at_end
    member.source.gained([TWO])
    assert not member.source.at_end
    member.reach_end(TWO)
    assert member.source.at_end


def test_an_incremental_rebalance_leaves_the_rest_to_be_read() -> None:
    member = Member(incremental=True)
    member.source.gained([ONE, TWO])
    member.reach_end(TWO)
    member.source.lost([ONE])
    assert member.source.at_end


def test_a_partition_that_is_assigned_again_is_read_again() -> None:
    member = Member(incremental=False)
    member.source.gained([ONE])
    member.reach_end(ONE)
    member.source.lost([ONE])
    member.source.gained([ONE])
    assert not member.source.at_end


def test_while_more_may_be_assigned_the_end_of_the_assigned_partitions_is_not_the_end() -> None:
    member = Member(incremental=True, more_to_come=True)
    member.source.gained([ONE])
    member.reach_end(ONE)
    assert not member.source.at_end
    member.source.gained([TWO])
    member.now_s = 100.0 + IDLE_AFTER_S
    assert not member.source.at_end
    member.reach_end(TWO)
    assert member.source.at_end
