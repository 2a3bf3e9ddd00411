"""The channel to one broker: few updates for many changes, and the whole state after a failure."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from headrace.protocol.between_brokers.update_metadata import (
    FULL,
    INCREMENTAL,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.message import Message
from headrace.protocol.peers import PeerGone
from headrace.replication.controller import channel as channels
from headrace.replication.controller.channel import Channel
from headrace.replication.controller.model import ClusterModel, Member, TopicModel
from headrace.replication.controller.updates import VERSIONS, Updates
from headrace.replication.election import Partition

PARTITION = Partition(replicas=(1,), leader=1, leader_epoch=0, isr=(1,))
COUNT = 10
KEYS = [TopicPartition("t", index) for index in range(COUNT)]


class FakeLink:
    """A connection that answers with the next of `codes`, or with success, once `gate` is open."""

    def __init__(self) -> None:
        self.requests: list[UpdateMetadataRequest] = []
        self.codes: list[ErrorCode] = []
        self.versions = VERSIONS
        self.gate = asyncio.Event()
        self.gate.set()

    async def ask(self, request: Message, _versions: range, *, timeout_s: float | None = None) -> Any:
        del timeout_s
        assert isinstance(request, UpdateMetadataRequest)
        await self.gate.wait()
        self.requests.append(request)
        return UpdateMetadataResponse(error_code=self.codes.pop(0) if self.codes else ErrorCode.NONE)

    def common_versions(self, _key: int, versions: range) -> range:
        return range(versions.start, min(versions.stop, self.versions.stop))

    async def closed(self) -> None:
        await asyncio.get_running_loop().create_future()

    def close(self) -> None:
        """Stay open: the next connection is this one again."""

    def sent(self) -> list[list[int] | None]:
        """The partitions of each update; None for the whole state."""
        return [
            None
            if each.type == FULL
            else [state.partition_index for topic in each.topic_states for state in topic.partition_states]
            for each in self.requests
        ]


def run(story: Callable[[Channel, FakeLink], Awaitable[None]]) -> None:
    async def play() -> None:
        topic = TopicModel(topic_id=bytes(16), version=0, partitions=dict.fromkeys(range(COUNT), PARTITION))
        model = ClusterModel(members={1: Member(broker_id=1, epoch=7)}, topics={"t": topic})
        link = FakeLink()

        async def connect(_broker_id: int) -> FakeLink:
            return link

        channel = Channel(
            1,
            connect=connect,
            updates=Updates(model, controller_id=1, controller_epoch=1),
            on_reachable=lambda _broker_id, _reachable: None,
            on_replaced=lambda: None,
        )
        try:
            await channel.propagated()
            assert link.sent() == [None]
            link.requests.clear()
            await story(channel, link)
        finally:
            channel.close()

    asyncio.run(play())


async def queue_behind(channel: Channel, link: FakeLink, batches: Sequence[Sequence[TopicPartition]]) -> None:
    """Queue these while an update is on its way, and return when the broker has acknowledged all."""
    link.gate.clear()
    channel.queue(())
    await asyncio.sleep(0)
    for batch in batches:
        channel.queue(batch)
    link.gate.set()
    await channel.propagated()


def test_changes_that_have_waited_are_sent_together() -> None:
    async def story(channel: Channel, link: FakeLink) -> None:
        await queue_behind(channel, link, [KEYS[3:5], KEYS[:2], KEYS[3:4]])

        assert link.sent()[-1] == [0, 1, 3, 4]
        assert len(link.requests) <= 2

    run(story)


def test_an_update_is_of_limited_size_but_a_batch_is_never_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "PARTITIONS_PER_UPDATE", 3)

    async def story(channel: Channel, link: FakeLink) -> None:
        await queue_behind(channel, link, [KEYS[:2], KEYS[2:3], KEYS[3:9], KEYS[9:]])

        assert [each for each in link.sent() if each] == [[0, 1, 2], [3, 4, 5, 6, 7, 8], [9]]

    run(story)


def test_a_broker_that_is_far_behind_is_sent_the_whole_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "MAX_QUEUED", 12)

    async def story(channel: Channel, link: FakeLink) -> None:
        await queue_behind(channel, link, [KEYS, KEYS])

        assert link.sent()[-1] is None
        assert list(range(COUNT)) not in link.sent()

    run(story)


def test_the_whole_state_follows_an_update_that_was_refused() -> None:
    async def story(channel: Channel, link: FakeLink) -> None:
        link.codes = [ErrorCode.KAFKA_STORAGE_ERROR]
        channel.queue(KEYS[:1])
        await channel.propagated()

        assert link.sent() == [[0], None]

    run(story)


def test_a_question_without_a_connection_fails() -> None:
    async def story() -> None:
        async def nowhere(_broker_id: int) -> FakeLink:
            raise PeerGone("there is no network")

        model = ClusterModel(members={})
        channel = Channel(
            1,
            connect=nowhere,
            updates=Updates(model, controller_id=1, controller_epoch=1),
            on_reachable=lambda _broker_id, _reachable: None,
            on_replaced=lambda: None,
        )
        try:
            await channel.ask(UpdateMetadataResponse(), range(8, 9))
        except PeerGone:
            return
        finally:
            channel.close()
        raise AssertionError("the question was answered")

    asyncio.run(story())


@pytest.mark.parametrize(("versions", "types"), [(range(8, 9), [FULL]), (range(8, 10), [INCREMENTAL] * 3)])
def test_a_broker_that_does_not_know_parts_gets_the_whole_state_in_one_message(
    versions: range, types: list[int]
) -> None:
    async def story(channel: Channel, link: FakeLink) -> None:
        link.versions = versions
        model: ClusterModel = channel._updates._model
        channel._updates._partitions_per_part = COUNT
        for name in ("u", "v"):
            model.add_topic(name, model.topics["t"])
        channel.queue_everything()
        await channel.propagated()

        assert [each.type for each in link.requests] == types
        named = [topic.topic_name for each in link.requests for topic in each.topic_states]
        assert named == ["t", "u", "v"]

    run(story)


def test_the_whole_state_is_sent_for_a_topic_that_was_deleted_long_ago() -> None:
    async def story(channel: Channel, link: FakeLink) -> None:
        await queue_behind(channel, link, [KEYS[:2], [TopicPartition("forgotten", 0)]])

        assert link.sent()[-1] is None

    run(story)
