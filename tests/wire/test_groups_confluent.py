"""Groups of confluent-kafka's consumers, by the classic protocol."""

from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from support.parameters import extended
from wire.group_stories import membership, static, subscriptions
from wire.group_stories.company import Company
from wire.group_stories.confluent_reading import committed, event, numbers, subscribed
from wire.group_stories.kinds import Kind
from wire.group_stories.topics import new_topic
from wire.process import BrokerProcess
from wire.requests import fresh_name

RANGE: Final = Kind("confluent", {"assignor": "range"})
ROUND_ROBIN: Final = Kind("confluent", {"assignor": "roundrobin"})
COOPERATIVE: Final = Kind("confluent", {"assignor": "cooperative-sticky"})
KINDS: Final = (RANGE, ROUND_ROBIN, COOPERATIVE)


@pytest.mark.parametrize("seed", [0, *extended([1])])
@pytest.mark.parametrize("kind", [RANGE, COOPERATIVE, *extended([ROUND_ROBIN])], ids=str)
def test_no_partition_has_two_owners_while_members_come_and_go(
    quick_groups: BrokerProcess, kind: Kind, seed: int
) -> None:
    membership.members_come_and_go(quick_groups.bootstrap, kind, seed)


@pytest.mark.parametrize("kind", [KINDS[0], *extended(KINDS[1:])], ids=str)
def test_more_members_than_partitions_leave_some_idle_and_describe_says_so(
    quick_groups: BrokerProcess, kind: Kind
) -> None:
    membership.more_members_than_partitions_leave_some_idle(quick_groups.bootstrap, kind)


@pytest.mark.parametrize("kind", [KINDS[0], *extended(KINDS[1:])], ids=str)
def test_a_member_that_closes_is_replaced_at_once(quick_groups: BrokerProcess, kind: Kind) -> None:
    patient = kind.but(session_timeout_ms=120_000)
    membership.a_member_that_closes_is_replaced_at_once(quick_groups.bootstrap, patient)


@pytest.mark.parametrize("kind", [KINDS[0], *extended(KINDS[1:])], ids=str)
def test_a_member_that_is_killed_is_replaced_after_its_session(
    quick_groups: BrokerProcess, kind: Kind, tmp_path: Path
) -> None:
    hasty = kind.but(session_timeout_ms=2000)
    membership.a_member_that_is_killed_is_replaced_after_its_session(quick_groups.bootstrap, hasty, tmp_path)


@pytest.mark.parametrize("kind", [KINDS[0], *extended(KINDS[1:])], ids=str)
def test_a_static_member_comes_back_unnoticed(quick_groups: BrokerProcess, kind: Kind) -> None:
    patient = kind.but(session_timeout_ms=60_000)
    static.a_static_member_comes_back_unnoticed(quick_groups.bootstrap, patient)


def test_a_second_consumer_of_the_same_instance_fences_the_first(quick_groups: BrokerProcess) -> None:
    group, topic = fresh_name("twins"), new_topic(quick_groups.bootstrap, partitions=1, records=10)
    twin = {"group_instance_id": "twin", "session_timeout_ms": 60_000}
    with subscribed(quick_groups.bootstrap, group, [topic], **twin) as first:
        numbers(first, 10)
        with subscribed(quick_groups.bootstrap, group, [topic], **twin) as second:
            assert numbers(second, 10) == list(range(10))

            told = event(first)
            assert told.code() == KafkaError._FATAL
            assert "fenced by other consumer" in told.str()
            with pytest.raises(KafkaException):
                first.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
            second.commit(asynchronous=False)
            assert committed(second, topic).offset == 10


@pytest.mark.parametrize("kind", [RANGE, COOPERATIVE], ids=str)
def test_a_pattern_picks_up_topics_that_are_made_later(quick_groups: BrokerProcess, kind: Kind) -> None:
    quick = kind.but(topic_metadata_refresh_interval_ms=200)
    subscriptions.a_pattern_picks_up_new_topics(quick_groups.bootstrap, quick)


def test_members_of_different_assignors_settle_on_the_one_they_share(quick_groups: BrokerProcess) -> None:
    with Company(quick_groups.bootstrap, partitions=4) as company:
        company.join(Kind("confluent", {"assignor": "range,roundrobin"}))
        company.join(Kind("confluent", {"assignor": "roundrobin,range"}))
        company.settle()
        company.join(ROUND_ROBIN)
        company.settle()

        assert company.groups.describe(company.group).partition_assignor == "roundrobin"


def test_a_member_that_shares_no_assignor_is_refused(quick_groups: BrokerProcess) -> None:
    group, topic = fresh_name("mixed"), new_topic(quick_groups.bootstrap, partitions=1, records=10)
    with subscribed(quick_groups.bootstrap, group, [topic], assignor="range") as first:
        numbers(first, 10)
        with subscribed(quick_groups.bootstrap, group, [topic], assignor="roundrobin") as stranger:
            assert event(stranger).code() == KafkaError.INCONSISTENT_GROUP_PROTOCOL
        first.commit(asynchronous=False)
