"""Groups of kafka-python's consumers: its four assignors, its ways to commit, its older protocols."""

from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from support.parameters import extended
from wire.group_stories import membership, positions, static
from wire.group_stories.groups import Groups
from wire.group_stories.kafka_python import (
    FencedInstanceIdError,
    NoOffsetForPartitionError,
    OffsetAndMetadata,
    TopicPartition,
)
from wire.group_stories.kinds import Kind
from wire.group_stories.readers_kafka_python import numbers, open_consumer
from wire.group_stories.reading import Place
from wire.group_stories.topics import new_topic, write
from wire.group_stories.waiting import eventually
from wire.process import BrokerProcess
from wire.requests import fresh_name

KINDS: Final = tuple(
    Kind("kafka-python", {"assignor": name})
    for name in ("range", "roundrobin", "sticky", "cooperative-sticky")
)
FETCHING_SINCE: Final = (0, 11)  # older clients ask for messages of a format that nobody has any more
VERSIONS: Final = ((0, 10), (0, 10, 2), FETCHING_SINCE, (1, 0), (2, 0), (2, 3), (2, 5), (3, 0))


@pytest.fixture
def topic(quick_groups: BrokerProcess) -> str:
    """One partition with the numbers from 0 to 99."""
    return new_topic(quick_groups.bootstrap, partitions=1, records=100)


@pytest.fixture
def group() -> str:
    return fresh_name("kafka-python")


@pytest.mark.parametrize("kind", [KINDS[0], *extended(KINDS[1:])], ids=str)
def test_no_partition_has_two_owners_while_members_come_and_go(
    quick_groups: BrokerProcess, kind: Kind
) -> None:
    membership.members_come_and_go(quick_groups.bootstrap, kind, seed=7)


def test_more_members_than_partitions_leave_some_idle_and_describe_says_so(
    quick_groups: BrokerProcess,
) -> None:
    membership.more_members_than_partitions_leave_some_idle(quick_groups.bootstrap, KINDS[0])


@pytest.mark.parametrize("kind", [KINDS[0], *extended(KINDS[1:])], ids=str)
def test_a_member_that_closes_is_replaced_at_once(quick_groups: BrokerProcess, kind: Kind) -> None:
    patient = kind.but(session_timeout_ms=120_000)
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


def test_the_return_of_a_static_member_starts_no_generation(
    quick_groups: BrokerProcess, topic: str, group: str
) -> None:
    options = {"group_id": group, "group_instance_id": "phoenix", "session_timeout_ms": 60_000}
    generations = []
    for _ in range(3):
        with closing(open_consumer(quick_groups.bootstrap, topic, **options)) as consumer:
            numbers(consumer, 100)
            generations.append(consumer.group_metadata().generation_id)

    assert generations == generations[:1] * 3


def test_a_second_consumer_of_the_same_instance_fences_the_first(
    quick_groups: BrokerProcess, topic: str, group: str
) -> None:
    options = {"group_id": group, "group_instance_id": "twin", "session_timeout_ms": 60_000}
    with (
        closing(open_consumer(quick_groups.bootstrap, topic, **options)) as first,
        closing(open_consumer(quick_groups.bootstrap, topic, **options)) as second,
    ):
        numbers(first, 100)
        numbers(second, 100)

        with pytest.raises(FencedInstanceIdError):
            first.commit()  # the client's poll() says nothing of it
        second.commit()
        assert second.committed(TopicPartition(topic, 0)) == 100


def test_a_consumer_goes_on_where_the_last_one_committed(
    quick_groups: BrokerProcess, topic: str, group: str
) -> None:
    place, later = TopicPartition(topic, 0), []
    with closing(open_consumer(quick_groups.bootstrap, topic, group_id=group)) as consumer:
        numbers(consumer, 20)
        consumer.commit()
        assert consumer.committed(place) == consumer.position(place)
        told = OffsetAndMetadata(33, "read by änne \N{ALARM CLOCK}", -1)
        consumer.commit({place: told})
        assert consumer.committed(place, metadata=True) == told
        consumer.commit_async(
            {place: OffsetAndMetadata(44, "", -1)}, callback=lambda *report: later.append(report)
        )
        eventually(lambda: consumer.poll(timeout_ms=10) is None or later)
        ((offsets, error_or_response),) = later
        assert offsets[place].offset == 44
        assert not isinstance(error_or_response, Exception)

    with closing(open_consumer(quick_groups.bootstrap, topic, group_id=group)) as consumer:
        assert numbers(consumer, 56) == list(range(44, 100))


def test_automatic_commits_happen_while_the_consumer_runs_and_when_it_closes(
    quick_groups: BrokerProcess, topic: str, group: str
) -> None:
    groups, place = Groups(quick_groups.bootstrap), Place(topic, 0)
    automatic = {"group_id": group, "enable_auto_commit": True, "auto_commit_interval_ms": 100}
    with closing(open_consumer(quick_groups.bootstrap, topic, **automatic)) as consumer:
        numbers(consumer, 100)
        eventually(lambda: consumer.poll(timeout_ms=10) or groups.committed(group) == {place: 100})

    write(quick_groups.bootstrap, topic, 0, range(100, 110))
    lazy = automatic | {"auto_commit_interval_ms": 600_000}
    with closing(open_consumer(quick_groups.bootstrap, topic, **lazy)) as consumer:
        assert numbers(consumer, 10) == list(range(100, 110))
        assert groups.committed(group) == {place: 100}
    assert groups.committed(group) == {place: 110}


@pytest.mark.parametrize(
    "instance", [{}, *extended([{"group_instance_id": "phoenix"}])], ids=["dynamic", "static"]
)
def test_after_a_crash_the_next_consumer_starts_at_the_last_commit(
    quick_groups: BrokerProcess, instance: dict[str, str], tmp_path: Path
) -> None:
    kind = Kind("kafka-python", {"session_timeout_ms": 2000, **instance})
    positions.the_next_one_starts_at_the_last_commit(quick_groups.bootstrap, kind, tmp_path)


def test_seeking_and_pausing_work_inside_a_group(quick_groups: BrokerProcess, group: str) -> None:
    topic = new_topic(quick_groups.bootstrap, partitions=2, records=10)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with closing(open_consumer(quick_groups.bootstrap, topic, group_id=group)) as consumer:
        numbers(consumer, 20)
        write(quick_groups.bootstrap, topic, 1, range(10, 11))
        numbers(consumer, 1)  # what is paused must not be what was read last: see FINDINGS.md
        consumer.pause(first)
        write(quick_groups.bootstrap, topic, 0, range(10, 15))
        write(quick_groups.bootstrap, topic, 1, range(20, 25))
        assert numbers(consumer, 5) == list(range(20, 25))
        consumer.seek(second, 14)
        assert numbers(consumer, 2) == [23, 24]
        consumer.resume(first)
        assert numbers(consumer, 5) == list(range(10, 15))


def test_without_a_commit_the_client_starts_where_it_was_told_to(
    quick_groups: BrokerProcess, topic: str
) -> None:
    def consumer(reset: str) -> Any:
        return closing(
            open_consumer(
                quick_groups.bootstrap, topic, group_id=fresh_name("reset"), auto_offset_reset=reset
            )
        )

    with consumer("earliest") as earliest:
        assert numbers(earliest, 100) == list(range(100))
    with consumer("latest") as latest:
        eventually(lambda: latest.poll(timeout_ms=100) or latest.assignment(), pause_s=0)
        assert latest.position(TopicPartition(topic, 0)) == 100
        write(quick_groups.bootstrap, topic, 0, range(100, 103))
        assert numbers(latest, 3) == [100, 101, 102]
    with consumer("none") as strict, pytest.raises(NoOffsetForPartitionError):
        eventually(lambda: strict.poll(timeout_ms=100), pause_s=0)


def test_a_pattern_picks_up_topics_that_are_made_later(quick_groups: BrokerProcess, group: str) -> None:
    early = new_topic(quick_groups.bootstrap, partitions=2, records=5, prefix=f"{group}-early")
    new_topic(quick_groups.bootstrap, partitions=1, records=5, prefix=f"not-{group}")
    with closing(open_consumer(quick_groups.bootstrap, group_id=group, metadata_max_age_ms=200)) as consumer:
        consumer.subscribe(pattern=f"^{group}-.*")
        numbers(consumer, 10)
        late = new_topic(quick_groups.bootstrap, partitions=3, records=5, prefix=f"{group}-late")
        consumer.commit()
        numbers(consumer, 15)

        assert {each.topic for each in consumer.assignment()} == {early, late}


@pytest.mark.parametrize("version", [VERSIONS[0], *extended(VERSIONS[1:-1]), VERSIONS[-1]], ids=str)
def test_older_protocols_join_commit_and_resume(
    quick_groups: BrokerProcess, topic: str, group: str, version: tuple[int, ...]
) -> None:
    place = TopicPartition(topic, 0)
    options = {"group_id": group, "api_version": version, "session_timeout_ms": 6000}
    with closing(open_consumer(quick_groups.bootstrap, topic, **options)) as consumer:
        if version < FETCHING_SINCE:
            eventually(lambda: consumer.poll(timeout_ms=100) or consumer.assignment(), pause_s=0)
        else:
            assert numbers(consumer, 100) == list(range(100))
        consumer.commit({place: OffsetAndMetadata(60, "old", -1)})
    with closing(open_consumer(quick_groups.bootstrap, topic, **options)) as consumer:
        assert consumer.committed(place) == 60

    with closing(open_consumer(quick_groups.bootstrap, topic, group_id=group)) as consumer:
        assert numbers(consumer, 40) == list(range(60, 100))
