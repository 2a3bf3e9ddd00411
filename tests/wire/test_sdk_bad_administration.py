"""What an admin cannot be told or asked: the sentence says why, and nothing has happened."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from headrace import Admin, BadSetting, ClientError, NoSuchGroup, NoSuchTopic
from wire.process import BrokerProcess
from wire.sdk import fresh, numbers, topic_of

Wrong = list[tuple[Callable[[], object], type[ClientError], str]]


def check(wrong: Wrong) -> None:
    for ask, kind, said in wrong:
        with pytest.raises(kind, match=re.escape(said)):
            ask()


def test_a_topic_that_is_misnamed_is_left_alone(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, numbers(2))
    with Admin(broker.bootstrap) as admin:
        bad: Any = admin
        check(
            [
                (lambda: bad.delete_topic(topic.encode()), NoSuchTopic, "not by bytes"),
                (lambda: bad.delete_topic(f"{topic}\0x"), NoSuchTopic, "a name has 1 to 249"),
                (lambda: bad.delete_topic("\udcff"), NoSuchTopic, "a name has 1 to 249"),
                (lambda: bad.create_topic(5), NoSuchTopic, "not by int"),
                (lambda: bad.describe_topic(["t"]), NoSuchTopic, "not by list"),
                (lambda: bad.topic_configs(None), NoSuchTopic, "not by NoneType"),
                (lambda: bad.alter_topic_configs(b"t", sets={"a": 1}), NoSuchTopic, "not by bytes"),
                (lambda: bad.offsets([topic]), NoSuchTopic, "not by list"),
                (lambda: bad.offsets_at(b"t", 0), NoSuchTopic, "not by bytes"),
                (lambda: bad.delete_records(None, {0: 1}), NoSuchTopic, "not by NoneType"),
                (lambda: bad.add_partitions(5, 5), NoSuchTopic, "not by int"),
            ]
        )
        assert admin.offsets(topic) == {0: (0, 2)}


def test_numbers_that_are_none_change_nothing(broker: BrokerProcess) -> None:
    topic, name = topic_of(broker.bootstrap, numbers(2)), fresh("topic")
    with Admin(broker.bootstrap) as admin:
        bad: Any = admin
        check(
            [
                (lambda: bad.create_topic(name, partitions="3"), BadSetting, "partitions='3'"),
                (lambda: bad.create_topic(name, replicas=1.0), BadSetting, "replicas=1.0"),
                (lambda: bad.create_topic(name, configs=5), BadSetting, "configs is a dict"),
                (lambda: bad.add_partitions(topic, "5"), BadSetting, "total='5'"),
                (lambda: bad.add_partitions(topic, 2**40), BadSetting, "total=1099511627776"),
                (lambda: bad.offsets_at(topic, 5.5), BadSetting, "milliseconds since 1970"),
                (lambda: bad.delete_records(topic, {0: "1"}), BadSetting, "offset='1'"),
                (lambda: bad.delete_records(topic, 1), BadSetting, "such as {0: 5}"),
                (lambda: bad.broker_configs("1"), BadSetting, "broker_id='1': it is an int"),
                (lambda: bad.broker_configs(1.0), BadSetting, "broker_id=1.0: it is an int"),
            ]
        )
        assert admin.offsets(topic) == {0: (0, 2)}
        with pytest.raises(NoSuchTopic):
            admin.describe_topic(name)


def test_a_group_goes_nowhere_that_is_no_offset(broker: BrokerProcess) -> None:
    topic, group = topic_of(broker.bootstrap, numbers(2)), fresh("group")
    with Admin(broker.bootstrap) as admin:
        bad: Any = admin
        check(
            [
                (lambda: bad.set_group_offsets(group, {(topic, 0): "1"}), BadSetting, "offset='1'"),
                (lambda: bad.set_group_offsets(group, {(topic, 0): 1.0}), BadSetting, "offset=1.0"),
                (lambda: bad.set_group_offsets(group, {(topic, 0): -1}), BadSetting, "offset=-1"),
                (lambda: bad.set_group_offsets(group, [(topic, 0)]), BadSetting, "such as {('orders', 0)"),
                (lambda: bad.set_group_offsets(5, {(topic, 0): 1}), BadSetting, "a group is named by a str"),
                (lambda: bad.describe_group(5), BadSetting, "a group is named by a str, not by 5"),
                (lambda: bad.describe_group(["g"]), BadSetting, "a group is named by a str"),
                (lambda: bad.describe_group("\ud800"), BadSetting, "a group is named by a str"),
                (lambda: bad.lag(None), BadSetting, "a group is named by a str, not by None"),
                (lambda: bad.delete_group(b"g"), BadSetting, "a group is named by a str"),
            ]
        )
        with pytest.raises(NoSuchGroup):
            admin.describe_group(group)
        admin.set_group_offsets(group, {(topic, 0): 100})  # past the end, which Kafka allows
        assert admin.describe_group(group).partitions[0].committed == 100


def test_settings_that_nobody_can_have_meant_are_left_as_they_are(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])
    with Admin(broker.bootstrap) as admin:
        bad: Any = admin
        admin.alter_topic_configs(topic, sets={"retention.ms": 1000})
        check(
            [
                (lambda: bad.alter_topic_configs(topic, sets=5), BadSetting, "sets is a dict"),
                (
                    lambda: bad.alter_topic_configs(topic, sets={}, unsets="retention.ms"),
                    BadSetting,
                    "unsets is a list of names, such as ['retention.ms'], not 'retention.ms'",
                ),
                (
                    lambda: bad.alter_topic_configs(topic, sets={"retention.ms": 5}, unsets=["retention.ms"]),
                    BadSetting,
                    "retention.ms is to be set, and is among `unsets`, too",
                ),
                (
                    lambda: bad.alter_topic_configs(topic, sets={"retention.ms": "2000\0x"}),
                    BadSetting,
                    "has no zero in it",
                ),
                (lambda: bad.alter_topic_configs(topic, sets={}), BadSetting, "there is nothing to change"),
                (lambda: bad.alter_broker_configs(1, sets={}), BadSetting, "there is nothing to change"),
            ]
        )
        assert admin.describe_topic(topic).configs == {"retention.ms": "1000"}
        admin.alter_topic_configs(topic, sets={}, unsets=["retention.ms"])
        assert admin.describe_topic(topic).configs == {}
