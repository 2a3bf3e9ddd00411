"""Metadata names no leader that is known to have gone; two brokers that run inside the test."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.image import ClusterImage
from headrace.broker.server import Broker
from headrace.broker.settings.config import BrokerConfig
from headrace.coordination.embedded.server import Coordinator
from headrace.protocol.api import ApiKey
from headrace.protocol.errors import ErrorCode
from headrace.protocol.headers import decode_response_header
from headrace.protocol.schema.metadata import MetadataRequest, MetadataResponse
from wire.raw import frame_of
from wire.requests import fetch_request, produce_request

VERSION = 12
EVERYTHING = MetadataRequest(topics=None)


@asynccontextmanager
async def running_brokers(root: Path, count: int) -> AsyncIterator[list[Broker]]:
    async with Coordinator(root / "coordinator", port=0, sync=False) as coordinator:
        brokers = [
            Broker(
                BrokerConfig.of(
                    {
                        "broker.id": str(broker_id),
                        "log.dirs": str(root / f"broker-{broker_id}"),
                        "listeners": "PLAINTEXT://127.0.0.1:0",
                        "zookeeper.connect": coordinator.address,
                    }
                )
            )
            for broker_id in range(1, count + 1)
        ]
        for broker in brokers:
            await broker.start()
        try:
            yield brokers
        finally:
            for broker in reversed(brokers):
                await broker.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 (what it waits for has no event)
            await asyncio.sleep(0.001)


async def reply(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(4), "big")
    return await reader.readexactly(size)


async def metadata(reader: asyncio.StreamReader) -> MetadataResponse:
    _, body = decode_response_header(ApiKey.METADATA, VERSION, memoryview(await reply(reader)))
    return MetadataResponse.decode(body, VERSION)


async def ask_metadata(broker: Broker) -> MetadataResponse:
    reader, writer = await asyncio.open_connection(broker.endpoints[0].host, broker.endpoints[0].port)
    writer.write(frame_of(EVERYTHING, VERSION))
    answer = await metadata(reader)
    writer.close()
    return answer


async def leader_of(broker: Broker, index: int) -> tuple[int, int]:
    """Who leads a partition of "t", as the broker tells its clients, and the error that goes with it."""
    (topic,) = [each for each in (await ask_metadata(broker)).topics if each.name == "t"]
    (found,) = [each for each in topic.partitions if each.partition_index == index]
    return found.leader_id, found.error_code


async def until_leader_is(leader: int, broker: Broker, index: int, error: ErrorCode = ErrorCode.NONE) -> None:
    async with asyncio.timeout(20):
        while await leader_of(broker, index) != (leader, error):  # noqa: ASYNC110 (there is no event)
            await asyncio.sleep(0.001)


async def create_topic_led_by(leader: Broker, follower: Broker) -> int:
    """Make "t" with replicas on both, and return a partition that `leader` leads and `follower` follows."""
    await follower.topic_admin.create("t", partitions=2, replicas=2)
    await follower.topic_admin.propagated()
    await until(lambda: {each.leader for each in follower.image.topics["t"].states.values()} == {1, 2})
    states = follower.image.topics["t"].states
    index = next(each for each, state in states.items() if state.leader == leader.broker_id)
    partition = next(each for id_, each in leader.partitions.items() if id_ == ("t", index))
    await until(lambda: bool(partition._followers))  # its fetch waits there
    return index


def hang_up(broker: Broker) -> None:
    for connection in tuple(broker.connections.all()):
        connection.abort()


def test_a_leader_that_refuses_connections_is_not_named_for_a_moment_and_not_replaced(tmp_path: Path) -> None:
    """It may be alive: only the end of its session tells."""

    async def story() -> None:
        async with running_brokers(tmp_path, 2) as (first, second):
            index = await create_topic_led_by(second, first)
            assert first.controller is not None
            for server in second._servers:
                server.close()
            hang_up(second)
            await until_leader_is(-1, first, index, ErrorCode.LEADER_NOT_AVAILABLE)
            await until_leader_is(2, first, index)
            await second.session.close()
            await until_leader_is(1, first, index)

    asyncio.run(story())


def test_a_leader_that_hangs_up_and_answers_again_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suspected: list[int] = []
    suspect = ClusterImage.suspect

    def noted(self: ClusterImage, broker_id: int) -> None:
        suspected.append(broker_id)
        suspect(self, broker_id)

    monkeypatch.setattr(ClusterImage, "suspect", noted)

    async def story() -> None:
        async with running_brokers(tmp_path, 2) as (first, second):
            index = await create_topic_led_by(second, first)
            hang_up(second)
            await until(lambda: 2 in suspected and 2 not in first.image.suspects)
            assert await leader_of(first, index) == (2, ErrorCode.NONE)

    asyncio.run(story())


def test_metadata_behind_a_long_poll_is_that_of_when_it_is_sent(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_brokers(tmp_path, 1) as (broker,):
            await broker.topic_admin.create("t", partitions=1, replicas=1)
            await broker.topic_admin.propagated()
            partition: Any = next(iter(broker.partitions.values()))
            reader, writer = await asyncio.open_connection(broker.endpoints[0].host, broker.endpoints[0].port)
            long_poll = fetch_request("t", max_wait_ms=60_000)
            writer.write(frame_of(long_poll, 12) + frame_of(EVERYTHING, VERSION))
            await until(lambda: bool(partition._readers))

            await broker.topic_admin.create("later", partitions=1, replicas=1)
            await broker.topic_admin.propagated()
            other_in, other_out = await asyncio.open_connection(
                broker.endpoints[0].host, broker.endpoints[0].port
            )
            other_out.write(frame_of(produce_request("t"), 9))
            await reply(other_in)

            await reply(reader)
            assert {topic.name for topic in (await metadata(reader)).topics} == {"t", "later"}
            writer.close()
            other_out.close()

    asyncio.run(story())
