"""What `headrace group` asks, asked of Apache Kafka: groups of both protocols, looked at and moved."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from confluent_kafka import Consumer

from compat.kafka_tools.server import KafkaServer
from headrace.client.errors import GroupActive, NoSuchGroup, NoSuchTopic
from headrace.client.groups.admin import GroupAdmin
from headrace.client.groups.group import Group
from headrace.client.groups.reset import ToEarliest, ToTime
from headrace.client.producer.producer import Producer
from headrace.client.wire.brokers import Brokers
from headrace.gateway.serving import serve_in_thread
from headrace.protocol.ids import TopicPartition
from http_support.asking import Asking

RECORDS: Final = 5
WAIT_S: Final = 60.0


@contextmanager
def reading(kafka: KafkaServer, group: str, protocol: str) -> Iterator[Consumer]:
    """A member that has read and committed everything."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": group,
            "client.id": "reader",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe(["orders"])
        read, deadline = 0, time.monotonic() + WAIT_S
        while read < RECORDS:
            assert time.monotonic() < deadline, f"only {read} of {RECORDS} records came"
            read += len(consumer.consume(RECORDS, 1))
        consumer.commit(asynchronous=False)
        yield consumer
    finally:
        consumer.close()


def test_kafka_answers_all_that_is_asked_of_groups(kafka_server: KafkaServer) -> None:
    kafka_server.create_topic("orders")
    with Producer(kafka_server.bootstrap) as producer:
        for number in range(RECORDS):
            producer.send("orders", str(number))
    admin = GroupAdmin(Brokers(kafka_server.bootstrap))
    with reading(kafka_server, "new", "consumer"), reading(kafka_server, "old", "classic"):
        listed = {each.name: (each.state, each.type, each.members) for each in admin.list_groups()}
        assert listed == {"new": ("Stable", "consumer", 1), "old": ("Stable", "classic", 1)}
        assert [each.name for each in admin.list_groups(types=["consumer"])] == ["new"]
        assert admin.list_groups(states=["Empty"]) == []
        for group in admin.describe(["new", "old"]):
            _check_read(group)
            with pytest.raises(GroupActive):
                admin.plan_reset(group.name, ToEarliest())
            with pytest.raises(GroupActive):
                admin.delete([group.name])
        with serve_in_thread(kafka_server.bootstrap) as served:
            asking = Asking(served.url)
            scraped = asking("GET", "/metrics").text
            asking.close()
        assert 'headrace_broker_up{broker="1"} 1' in scraped
        assert 'kafka_consumergroup_lag{consumergroup="old",partition="0",topic="orders"} 0.0' in scraped
    _move(admin)


def _check_read(group: Group) -> None:
    (member,) = group.members
    assert (member.client_id, member.host) == ("reader", "127.0.0.1")
    assert [(each.topic, each.partitions) for each in member.assignment] == [("orders", (0,))]
    (progress,) = group.partitions
    assert (progress.committed, progress.log_end, progress.lag) == (RECORDS, RECORDS, 0)
    assert progress.member_id == member.member_id
    assert group.assignor == {"new": "uniform", "old": "range"}[group.name]
    assert group.coordinator.id == 1


def _move(admin: GroupAdmin) -> None:
    """Groups that nobody is in any more."""
    with pytest.raises(NoSuchGroup):
        admin.describe(["new", "never"])
    with pytest.raises(NoSuchTopic):
        admin.plan_reset("old", ToEarliest(), {"nowhere": ()})
    assert [each.name for each in admin.describe_there(["never", "old"])] == ["old"]
    admin.reset("old", admin.plan_reset("old", ToEarliest()))
    assert admin.describe(["old"])[0].total_lag == RECORDS
    (reset,) = admin.plan_reset("made", ToTime(0), {"orders": ()}, may_be_new=True)
    assert (reset.old, reset.new) == (None, 0)
    admin.reset("made", [reset])
    (progress,) = admin.describe(["made"])[0].partitions
    admin.delete_offsets("old", [TopicPartition(progress.topic, progress.partition)])
    assert admin.describe(["old"])[0].partitions == ()
    admin.delete(["new", "made"])
    assert "made" not in [each.name for each in admin.list_groups()]
