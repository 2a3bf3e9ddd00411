"""Groups by the protocol of KIP-848: the broker assigns. confluent-kafka's consumers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import KafkaError

from support.parameters import extended
from wire.group_stories import membership, migration, positions, static, subscriptions
from wire.group_stories.brokers import quick_broker
from wire.group_stories.company import Company
from wire.group_stories.confluent_reading import committed, event, numbers, subscribed
from wire.group_stories.groups import CLASSIC, CONSUMER, Groups
from wire.group_stories.kinds import Kind
from wire.group_stories.topics import new_topic, write
from wire.process import BrokerProcess
from wire.requests import fresh_name

NEW: Final = {"group_protocol": "consumer"}
UNIFORM: Final = Kind("confluent", {**NEW, "group_remote_assignor": "uniform"})
RANGE: Final = Kind("confluent", {**NEW, "group_remote_assignor": "range"})
KINDS: Final = (UNIFORM, RANGE)


@pytest.fixture(scope="module")
def hasty_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Here a session takes two seconds."""
    directory = tmp_path_factory.mktemp("hasty")
    with quick_broker(directory, group_consumer_session_timeout_ms="2000") as process:
        yield process


@pytest.mark.parametrize("seed", [0, *extended([1])])
@pytest.mark.parametrize("kind", [KINDS[0], *extended(KINDS[1:])], ids=str)
def test_no_partition_has_two_owners_while_members_come_and_go(
    quick_groups: BrokerProcess, kind: Kind, seed: int
) -> None:
    membership.members_come_and_go(quick_groups.bootstrap, kind, seed)


@pytest.mark.parametrize("kind", [KINDS[0], *extended(KINDS[1:])], ids=str)
def test_more_members_than_partitions_leave_some_idle_and_describe_says_so(
    quick_groups: BrokerProcess, kind: Kind
) -> None:
    membership.more_members_than_partitions_leave_some_idle(quick_groups.bootstrap, kind)


def test_a_member_that_closes_is_replaced_at_once(quick_groups: BrokerProcess) -> None:
    membership.a_member_that_closes_is_replaced_at_once(quick_groups.bootstrap, UNIFORM)


def test_a_member_that_is_killed_is_replaced_after_its_session(
    hasty_broker: BrokerProcess, tmp_path: Path
) -> None:
    membership.a_member_that_is_killed_is_replaced_after_its_session(
        hasty_broker.bootstrap, UNIFORM, tmp_path
    )


def test_after_a_crash_the_next_consumer_starts_at_the_last_commit(
    hasty_broker: BrokerProcess, tmp_path: Path
) -> None:
    positions.the_next_one_starts_at_the_last_commit(hasty_broker.bootstrap, UNIFORM, tmp_path)


@pytest.mark.parametrize("kind", [KINDS[0], *extended(KINDS[1:])], ids=str)
def test_a_static_member_comes_back_unnoticed(quick_groups: BrokerProcess, kind: Kind) -> None:
    static.a_static_member_comes_back_unnoticed(quick_groups.bootstrap, kind)


def test_a_second_consumer_of_the_same_instance_is_refused_while_the_first_is_there(
    quick_groups: BrokerProcess,
) -> None:
    group, topic = fresh_name("twins"), new_topic(quick_groups.bootstrap, partitions=1, records=10)
    twin = {"group_instance_id": "twin", **NEW}
    with subscribed(quick_groups.bootstrap, group, [topic], **twin) as first:
        numbers(first, 10)
        with subscribed(quick_groups.bootstrap, group, [topic], **twin) as second:
            told = event(second)
            assert told.code() == KafkaError._FATAL
            assert "instance ID is still used" in told.str()
        write(quick_groups.bootstrap, topic, 0, range(10, 20))
        assert numbers(first, 10) == list(range(10, 20))
        first.commit(asynchronous=False)
        assert committed(first, topic).offset == 20


def test_describe_and_list_tell_the_type_and_the_assignor(quick_groups: BrokerProcess) -> None:
    with Company(quick_groups.bootstrap, partitions=2) as company:
        company.join(RANGE)
        company.settle()
        described = company.groups.describe(company.group)

        assert (described.type, described.partition_assignor) == (CONSUMER, "range")
        assert company.group in company.groups.listed(types={CONSUMER})
        assert company.groups.listed()[company.group].type is CONSUMER


def test_an_assignor_that_the_broker_does_not_have_is_refused(quick_groups: BrokerProcess) -> None:
    topic = new_topic(quick_groups.bootstrap, partitions=1)
    wrong = {"group_remote_assignor": "alphabetic", **NEW}
    with subscribed(quick_groups.bootstrap, fresh_name("wrong"), [topic], **wrong) as consumer:
        told = event(consumer)
        assert told.code() in {KafkaError._FATAL, KafkaError.UNSUPPORTED_ASSIGNOR}


def test_a_pattern_picks_up_topics_that_are_made_later(quick_groups: BrokerProcess) -> None:
    """The broker matches it."""
    subscriptions.a_pattern_picks_up_new_topics(quick_groups.bootstrap, UNIFORM)


def test_partitions_that_are_added_later_are_assigned(quick_groups: BrokerProcess) -> None:
    subscriptions.added_partitions_are_assigned(quick_groups.bootstrap, UNIFORM)


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_a_group_migrates_to_the_new_protocol_and_back_and_loses_nothing(
    quick_groups: BrokerProcess, assignor: str
) -> None:
    classic = Kind("confluent", {"assignor": assignor, "session_timeout_ms": 60_000})
    migration.a_group_migrates_and_comes_back(quick_groups.bootstrap, classic, UNIFORM)


def test_a_group_whose_assignor_tells_its_members_more_does_not_migrate(quick_groups: BrokerProcess) -> None:
    """As librdkafka's cooperative-sticky does from its second round on. The group goes on without it."""
    with Company(quick_groups.bootstrap, partitions=2) as company:
        for _ in range(2):
            company.join(Kind("confluent", {"assignor": "cooperative-sticky"}))
            company.settle()
        with subscribed(quick_groups.bootstrap, company.group, [company.topic], **NEW) as newcomer:
            told = event(newcomer)
            assert told.code() == KafkaError._FATAL
            assert "group id does not exist" in told.str()
        company.settle()
        assert company.groups.describe(company.group).type is CLASSIC


@pytest.mark.parametrize("options", [{}, NEW], ids=["to classic", "to consumer"])
def test_an_empty_group_changes_its_protocol_and_keeps_its_offsets(
    quick_groups: BrokerProcess, options: dict[str, str]
) -> None:
    group, topic = fresh_name("changed"), new_topic(quick_groups.bootstrap, partitions=1, records=20)
    first = {} if options else NEW
    with subscribed(quick_groups.bootstrap, group, [topic], **first) as consumer:
        numbers(consumer, 10)
        consumer.commit(asynchronous=False)

    with subscribed(quick_groups.bootstrap, group, [topic], **options) as consumer:
        assert numbers(consumer, 10) == list(range(10, 20))
        assert (Groups(quick_groups.bootstrap).describe(group).type is CONSUMER) == bool(options)
