"""Where confluent-kafka's consumers go on: every way to commit, every way to come back."""

from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from support.parameters import extended
from wire.group_stories import positions
from wire.group_stories.confluent_reading import committed, event, numbers, subscribed
from wire.group_stories.groups import Groups
from wire.group_stories.kinds import Kind
from wire.group_stories.readers_confluent import open_consumer
from wire.group_stories.reading import Place
from wire.group_stories.topics import new_topic, write
from wire.group_stories.waiting import eventually
from wire.process import BrokerProcess
from wire.requests import fresh_name

RANGE: Final = {"partition_assignment_strategy": "range"}
ROUND_ROBIN: Final = {"partition_assignment_strategy": "roundrobin"}
COOPERATIVE: Final = {"partition_assignment_strategy": "cooperative-sticky"}
UNIFORM: Final = {"group_protocol": "consumer", "group_remote_assignor": "uniform"}
SERVER_RANGE: Final = {"group_protocol": "consumer", "group_remote_assignor": "range"}
PROTOCOLS: Final = (RANGE, UNIFORM, *extended([ROUND_ROBIN, COOPERATIVE, SERVER_RANGE]))


@pytest.fixture
def topic(quick_groups: BrokerProcess) -> str:
    """One partition with the numbers from 0 to 99."""
    return new_topic(quick_groups.bootstrap, partitions=1, records=100)


@pytest.fixture
def group() -> str:
    return fresh_name("confluent")


def shown(options: Any) -> str:
    return " ".join(str(value) for value in options.values())


every_protocol = pytest.mark.parametrize("options", PROTOCOLS, ids=shown)
both_protocols = pytest.mark.parametrize("options", [RANGE, UNIFORM], ids=shown)


@every_protocol
def test_a_new_consumer_goes_on_where_the_last_one_committed(
    quick_groups: BrokerProcess, topic: str, group: str, options: dict[str, Any]
) -> None:
    with subscribed(quick_groups.bootstrap, group, [topic], **options) as consumer:
        assert numbers(consumer, 30) == list(range(30))
        (result,) = consumer.commit(asynchronous=False)
        assert (result.offset, result.error) == (30, None)
        assert numbers(consumer, 10) == list(range(30, 40))  # and these are not committed

    with subscribed(quick_groups.bootstrap, group, [topic], **options) as consumer:
        assert numbers(consumer, 70) == list(range(30, 100))
        assert committed(consumer, topic).offset == 30


@both_protocols
def test_an_asynchronous_commit_calls_back_with_what_it_committed(
    quick_groups: BrokerProcess, topic: str, group: str, options: dict[str, Any]
) -> None:
    reports: list[tuple[Any, list[Any]]] = []
    with subscribed(
        quick_groups.bootstrap,
        group,
        [topic],
        on_commit=lambda error, places: reports.append((error, places)),
        **options,
    ) as consumer:
        numbers(consumer, 20)
        consumer.commit(offsets=[TopicPartition(topic, 0, 20)], asynchronous=True)
        eventually(lambda: (consumer.poll(0.01), reports)[1], pause_s=0)
        ((error, (place,)),) = reports
        assert (error, place.topic, place.partition, place.offset) == (None, topic, 0, 20)

    assert Groups(quick_groups.bootstrap).committed(group) == {Place(topic, 0): 20}


@both_protocols
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_message_is_committed_as_the_place_after_it(
    quick_groups: BrokerProcess, topic: str, group: str, options: dict[str, Any], asynchronous: bool
) -> None:
    with subscribed(quick_groups.bootstrap, group, [topic], **options) as consumer:
        numbers(consumer, 41)
        message = eventually(lambda: consumer.poll(0.1), pause_s=0)
        consumer.commit(message=message, asynchronous=asynchronous)
        eventually(lambda: committed(consumer, topic).offset == 42)


@both_protocols
def test_the_metadata_of_a_commit_comes_back(
    quick_groups: BrokerProcess, topic: str, group: str, options: dict[str, Any]
) -> None:
    told = "read by änne, at 10:07 \N{ALARM CLOCK}"
    with subscribed(quick_groups.bootstrap, group, [topic], **options) as consumer:
        numbers(consumer, 1)
        consumer.commit(offsets=[TopicPartition(topic, 0, 7, told)], asynchronous=False)
        found = committed(consumer, topic)

    assert (found.offset, found.metadata) == (7, told)


@both_protocols
def test_automatic_commits_happen_while_the_consumer_runs_and_when_it_closes(
    quick_groups: BrokerProcess, topic: str, group: str, options: dict[str, Any]
) -> None:
    groups, place = Groups(quick_groups.bootstrap), Place(topic, 0)
    automatic = {"enable_auto_commit": True, "auto_commit_interval_ms": 100}
    with subscribed(quick_groups.bootstrap, group, [topic], **automatic, **options) as consumer:
        numbers(consumer, 60)
        eventually(lambda: groups.committed(group) == {place: 60})

    lazy = {"enable_auto_commit": True, "auto_commit_interval_ms": 600_000}
    with subscribed(quick_groups.bootstrap, group, [topic], **lazy, **options) as consumer:
        assert numbers(consumer, 10) == list(range(60, 70))
        assert groups.committed(group) == {place: 60}
    assert groups.committed(group) == {place: 70}


def test_only_stored_offsets_are_committed_automatically(
    quick_groups: BrokerProcess, topic: str, group: str
) -> None:
    options = {"enable_auto_commit": True, "enable_auto_offset_store": False}
    with subscribed(quick_groups.bootstrap, group, [topic], **options) as consumer:
        numbers(consumer, 50)
        consumer.store_offsets(offsets=[TopicPartition(topic, 0, 12)])

    assert Groups(quick_groups.bootstrap).committed(group) == {Place(topic, 0): 12}


@pytest.mark.parametrize("instance", [{}, {"group_instance_id": "phoenix"}], ids=["dynamic", "static"])
def test_after_a_crash_the_next_consumer_starts_at_the_last_commit(
    quick_groups: BrokerProcess, instance: dict[str, str], tmp_path: Path
) -> None:
    kind = Kind("confluent", {"session_timeout_ms": 2000, **instance})
    positions.the_next_one_starts_at_the_last_commit(quick_groups.bootstrap, kind, tmp_path)


@both_protocols
def test_seeking_and_pausing_work_inside_a_group(
    quick_groups: BrokerProcess, group: str, options: dict[str, Any]
) -> None:
    topic = new_topic(quick_groups.bootstrap, partitions=2, records=10)
    with subscribed(quick_groups.bootstrap, group, [topic], **options) as consumer:
        assert sorted(numbers(consumer, 20)) == sorted([*range(10), *range(10)])
        consumer.pause([TopicPartition(topic, 0)])
        write(quick_groups.bootstrap, topic, 0, range(10, 15))
        write(quick_groups.bootstrap, topic, 1, range(20, 25))
        assert numbers(consumer, 5) == list(range(20, 25))
        consumer.seek(TopicPartition(topic, 1, 13))
        assert numbers(consumer, 2) == [23, 24]
        consumer.resume([TopicPartition(topic, 0)])
        assert numbers(consumer, 5) == list(range(10, 15))


@both_protocols
def test_without_a_commit_the_client_starts_where_it_was_told_to(
    quick_groups: BrokerProcess, topic: str, options: dict[str, Any]
) -> None:
    earliest, latest, error = (fresh_name("reset") for _ in range(3))
    with subscribed(
        quick_groups.bootstrap, earliest, [topic], auto_offset_reset="earliest", **options
    ) as consumer:
        assert numbers(consumer, 3) == [0, 1, 2]

    at_the_end = {"auto_offset_reset": "latest", "enable_partition_eof": True}
    with subscribed(quick_groups.bootstrap, latest, [topic], **at_the_end, **options) as consumer:
        assert event(consumer).code() == KafkaError._PARTITION_EOF
        write(quick_groups.bootstrap, topic, 0, range(100, 103))
        assert numbers(consumer, 3) == [100, 101, 102]

    with subscribed(quick_groups.bootstrap, error, [topic], auto_offset_reset="error", **options) as consumer:
        assert event(consumer).code() == KafkaError._AUTO_OFFSET_RESET


def test_a_consumer_that_assigns_itself_commits_to_a_group_without_members(
    quick_groups: BrokerProcess, topic: str, group: str
) -> None:
    consumer = open_consumer(quick_groups.bootstrap, group_id=group)
    consumer.assign([TopicPartition(topic, 0, 5)])
    assert numbers(consumer, 3) == [5, 6, 7]
    consumer.commit(asynchronous=False)
    consumer.close()

    assert Groups(quick_groups.bootstrap).committed(group) == {Place(topic, 0): 8}
    with subscribed(quick_groups.bootstrap, group, [topic]) as member:
        assert numbers(member, 2) == [8, 9]


@both_protocols
def test_a_stranger_cannot_commit_for_a_group_that_has_members(
    quick_groups: BrokerProcess, topic: str, group: str, options: dict[str, Any]
) -> None:
    stranger = open_consumer(quick_groups.bootstrap, group_id=group)
    stranger.assign([TopicPartition(topic, 0, 5)])
    with subscribed(quick_groups.bootstrap, group, [topic], **options) as consumer:
        numbers(consumer, 4)
        consumer.commit(asynchronous=False)

        with pytest.raises(KafkaException) as refused:
            stranger.commit(offsets=[TopicPartition(topic, 0, 77)], asynchronous=False)

        assert refused.value.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID
        assert committed(consumer, topic).offset == 4
    stranger.close()


def test_a_group_is_listed_emptied_altered_and_deleted(
    quick_groups: BrokerProcess, topic: str, group: str
) -> None:
    groups, place = Groups(quick_groups.bootstrap), Place(topic, 0)
    with subscribed(quick_groups.bootstrap, group, [topic]) as consumer:
        numbers(consumer, 10)
        consumer.commit(asynchronous=False)
        with pytest.raises(KafkaException, match="NON_EMPTY_GROUP"):
            groups.delete(group)

    groups.alter(group, {place: 90})
    assert groups.committed(group) == {place: 90}
    with subscribed(quick_groups.bootstrap, group, [topic]) as consumer:
        assert numbers(consumer, 10) == list(range(90, 100))
    assert group in groups.listed()
    groups.delete(group)
    assert group not in groups.listed()
    assert groups.committed(group) == {}
