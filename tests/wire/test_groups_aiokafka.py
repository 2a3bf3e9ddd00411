"""Groups of aiokafka's consumers: its three assignors, its ways to commit. Its requests are old ones."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import NoOffsetForPartitionError
from aiokafka.structs import OffsetAndMetadata

from support.parameters import extended
from wire.group_stories import membership, positions, static, subscriptions
from wire.group_stories.groups import Groups
from wire.group_stories.kinds import Kind
from wire.group_stories.readers_aiokafka import make_consumer
from wire.group_stories.reading import Place
from wire.group_stories.topics import new_topic, write
from wire.group_stories.waiting import TIMEOUT_S, eventually_async
from wire.process import BrokerProcess
from wire.requests import fresh_name

KINDS: Final = tuple(Kind("aiokafka", {"assignor": name}) for name in ("range", "roundrobin", "sticky"))


@pytest.fixture
def topic(quick_groups: BrokerProcess) -> str:
    """One partition with the numbers from 0 to 99."""
    return new_topic(quick_groups.bootstrap, partitions=1, records=100)


@pytest.fixture
def group() -> str:
    return fresh_name("aiokafka")


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 2 * TIMEOUT_S))


@asynccontextmanager
async def consuming(bootstrap: str, *topics: str, **options: Any) -> AsyncIterator[Any]:
    consumer = make_consumer(bootstrap, *topics, **options)
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


async def numbers(consumer: Any, count: int) -> list[int]:
    return [int((await asyncio.wait_for(consumer.getone(), TIMEOUT_S)).value) for _ in range(count)]


async def committed_is(consumer: Any, topic: str, offset: int) -> bool:
    return bool(await consumer.committed(TopicPartition(topic, 0)) == offset)


async def is_assigned(consumer: Any) -> bool:
    return bool(consumer.assignment())


@pytest.mark.parametrize("kind", [KINDS[0], *extended(KINDS[1:])], ids=str)
def test_no_partition_has_two_owners_while_members_come_and_go(
    quick_groups: BrokerProcess, kind: Kind
) -> None:
    membership.members_come_and_go(quick_groups.bootstrap, kind, seed=7)


def test_more_members_than_partitions_leave_some_idle_and_describe_says_so(
    quick_groups: BrokerProcess,
) -> None:
    membership.more_members_than_partitions_leave_some_idle(quick_groups.bootstrap, KINDS[0])


def test_a_member_that_closes_is_replaced_at_once(quick_groups: BrokerProcess) -> None:
    patient = KINDS[0].but(session_timeout_ms=120_000)
    membership.a_member_that_closes_is_replaced_at_once(quick_groups.bootstrap, patient)


def test_a_member_that_is_killed_is_replaced_after_its_session(
    quick_groups: BrokerProcess, tmp_path: Path
) -> None:
    hasty = KINDS[0].but(session_timeout_ms=2000)
    membership.a_member_that_is_killed_is_replaced_after_its_session(quick_groups.bootstrap, hasty, tmp_path)


@pytest.mark.parametrize("kind", [KINDS[0], *extended(KINDS[1:])], ids=str)
def test_a_static_member_comes_back_unnoticed(quick_groups: BrokerProcess, kind: Kind) -> None:
    patient = kind.but(session_timeout_ms=60_000)
    static.a_static_member_comes_back_unnoticed(quick_groups.bootstrap, patient)


def test_a_consumer_goes_on_where_the_last_one_committed(
    quick_groups: BrokerProcess, topic: str, group: str
) -> None:
    place, told = TopicPartition(topic, 0), "read by änne \N{ALARM CLOCK}"

    async def story() -> None:
        async with consuming(quick_groups.bootstrap, topic, group_id=group) as consumer:
            assert await numbers(consumer, 20) == list(range(20))
            await consumer.commit()
            assert await consumer.committed(place) == 20
            await consumer.commit({place: OffsetAndMetadata(33, told)})
            assert await consumer.committed(place) == 33
        async with consuming(quick_groups.bootstrap, topic, group_id=group) as consumer:
            assert await numbers(consumer, 67) == list(range(33, 100))

    run(story())
    assert Groups(quick_groups.bootstrap).metadata(group, Place(topic, 0)) == told


def test_commits_in_the_background_arrive(quick_groups: BrokerProcess, topic: str, group: str) -> None:
    async def story() -> None:
        async with consuming(quick_groups.bootstrap, topic, group_id=group) as consumer:
            await numbers(consumer, 20)
            commit = asyncio.create_task(consumer.commit())
            await numbers(consumer, 80)
            await asyncio.wait_for(commit, TIMEOUT_S)

    run(story())
    assert Groups(quick_groups.bootstrap).committed(group) == {Place(topic, 0): 20}


def test_automatic_commits_happen_while_the_consumer_runs_and_when_it_closes(
    quick_groups: BrokerProcess, topic: str, group: str
) -> None:
    groups, place = Groups(quick_groups.bootstrap), Place(topic, 0)
    automatic = {"group_id": group, "enable_auto_commit": True, "auto_commit_interval_ms": 100}
    lazy = automatic | {"auto_commit_interval_ms": 600_000}

    async def story() -> None:
        async with consuming(quick_groups.bootstrap, topic, **automatic) as consumer:
            await numbers(consumer, 60)
            await eventually_async(lambda: committed_is(consumer, topic, 60))
        async with consuming(quick_groups.bootstrap, topic, **lazy) as consumer:
            assert await numbers(consumer, 10) == list(range(60, 70))
            assert groups.committed(group) == {place: 60}

    run(story())
    assert groups.committed(group) == {place: 70}


@pytest.mark.parametrize(
    "instance", [{}, *extended([{"group_instance_id": "phoenix"}])], ids=["dynamic", "static"]
)
def test_after_a_crash_the_next_consumer_starts_at_the_last_commit(
    quick_groups: BrokerProcess, instance: dict[str, str], tmp_path: Path
) -> None:
    kind = Kind("aiokafka", {"session_timeout_ms": 2000, **instance})
    positions.the_next_one_starts_at_the_last_commit(quick_groups.bootstrap, kind, tmp_path)


def test_seeking_and_pausing_work_inside_a_group(quick_groups: BrokerProcess, group: str) -> None:
    topic = new_topic(quick_groups.bootstrap, partitions=2, records=10)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)

    async def story() -> None:
        async with consuming(quick_groups.bootstrap, topic, group_id=group) as consumer:
            await numbers(consumer, 20)
            consumer.pause(first)
            write(quick_groups.bootstrap, topic, 0, range(10, 15))
            write(quick_groups.bootstrap, topic, 1, range(20, 25))
            assert await numbers(consumer, 5) == list(range(20, 25))
            consumer.seek(second, 13)
            assert await numbers(consumer, 2) == [23, 24]
            consumer.resume(first)
            assert await numbers(consumer, 5) == list(range(10, 15))

    run(story())


def test_without_a_commit_the_client_starts_where_it_was_told_to(
    quick_groups: BrokerProcess, topic: str
) -> None:
    def consumer(reset: str) -> Any:
        return consuming(quick_groups.bootstrap, topic, group_id=fresh_name("reset"), auto_offset_reset=reset)

    async def story() -> None:
        async with consumer("earliest") as earliest:
            assert await numbers(earliest, 3) == [0, 1, 2]
        async with consumer("latest") as latest:
            await eventually_async(lambda: is_assigned(latest))
            assert await latest.position(TopicPartition(topic, 0)) == 100
            write(quick_groups.bootstrap, topic, 0, range(100, 103))
            assert await numbers(latest, 3) == [100, 101, 102]
        async with consumer("none") as strict:
            with pytest.raises(NoOffsetForPartitionError):
                await numbers(strict, 1)

    run(story())


def test_a_pattern_picks_up_topics_that_are_made_later(quick_groups: BrokerProcess) -> None:
    kind = Kind("aiokafka", {"metadata_max_age_ms": 200})
    subscriptions.a_pattern_picks_up_new_topics(quick_groups.bootstrap, kind)
