"""What new users of the SDK try first, and what they are told."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from headrace import (
    STRING,
    Admin,
    AsyncProducer,
    Avro,
    BadSetting,
    ClientError,
    Consumer,
    DeliveryFailed,
    NoSuchTopic,
    Producer,
    Protobuf,
    Unreachable,
)
from headrace.testing import Cluster
from wire.process import BrokerProcess
from wire.sdk import QUICK, fresh, numbers, topic_of


@contextmanager
def told(kind: type[Exception], said: str) -> Iterator[None]:
    with pytest.raises(kind, match=re.escape(said)):
        yield


@pytest.mark.parametrize(
    "bootstrap",
    [
        lambda address: ((), {"bootstrap_servers": address}),
        lambda address: ((), {"bootstrap_servers": [address]}),
        lambda address: (([address, address],), {}),
        lambda address: (((address,),), {}),
        lambda address: (({"bootstrap.servers": [address]},), {}),
    ],
)
def test_addresses_may_be_written_as_for_other_clients(broker: BrokerProcess, bootstrap: Any) -> None:
    topic = topic_of(broker.bootstrap, [])
    arguments, named = bootstrap(broker.bootstrap)
    quick = {**named, **QUICK}
    with Producer(*arguments, **named) as producer:
        producer.send(topic, b"x")
    with Consumer(*arguments, **quick) as consumer:
        consumer.subscribe(topic)
        assert [message.value for message in consumer.read(stop_at_end=True)] == [b"x"]
    with Admin(*arguments, **named) as admin:
        assert admin.offsets(topic) == {0: (0, 1)}


@pytest.mark.parametrize("kind", [Producer, Consumer, Admin])
def test_a_client_has_to_know_where_the_brokers_are(kind: Any) -> None:
    with told(BadSetting, "bootstrap.servers is missing"):
        kind(None)
    with told(BadSetting, "bootstrap.servers is missing"):
        kind()
    with told(BadSetting, "HOST:PORT,... or a list of such, not 9092"):
        kind(9092)


def test_a_group_may_be_named_as_for_other_clients(broker: BrokerProcess) -> None:
    topic, group = topic_of(broker.bootstrap, numbers(3)), fresh("group")
    with Consumer(broker.bootstrap, topic, group_id=group, enable_auto_commit=False, **QUICK) as consumer:
        assert len(list(consumer.read(stop_at_end=True))) == 3
        consumer.commit()
    with Admin(broker.bootstrap) as admin:
        assert admin.lag(group) == {(topic, 0): 0}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"acks": 2}, "acks is 'all', 1 or 0, not 2"),
        ({"settings": {"request.required.acks": 2}}, "acks is 'all', 1 or 0, not 2"),
        ({"settings": {"on_delivery": print}}, "post(..., on_delivery=FUNCTION)"),
        ({"on_delivery": print}, "post(..., on_delivery=FUNCTION)"),
        ({"value_serializer": str.encode}, "give value=FORMAT"),
    ],
)
def test_settings_of_a_producer_that_nobody_would_keep_to_are_refused(
    broker: BrokerProcess, settings: dict[str, Any], said: str
) -> None:
    with told(BadSetting, said):
        Producer(broker.bootstrap, **settings)


@pytest.mark.parametrize("key", [None, b"k"])
@pytest.mark.parametrize("partition", [None, 0])
@pytest.mark.parametrize(
    ("topic", "said"), [(None, "named by a str"), ("bad topic/!", "1 to 249"), ("", "1 to 249")]
)
def test_a_name_that_no_topic_can_have_is_told_as_such(
    broker: BrokerProcess, topic: Any, said: str, key: bytes | None, partition: int | None
) -> None:
    with pytest.raises((NoSuchTopic, DeliveryFailed), match=said), Producer(broker.bootstrap) as producer:
        producer.send(topic, b"x", key, partition=partition)


@pytest.mark.parametrize("topics", ["bad topic/!", 5, [None]])
def test_a_consumer_is_told_so_too(broker: BrokerProcess, topics: Any) -> None:
    with told(NoSuchTopic, "there can be no topic"):
        Consumer(broker.bootstrap, topics)


def test_a_setting_that_there_is_not_is_named_by_an_admin_too(broker: BrokerProcess) -> None:
    with told(BadSetting, "there is no setting no.such.thing"):
        Admin(broker.bootstrap, no_such_thing=1)


def test_a_pattern_that_is_none_is_named(broker: BrokerProcess) -> None:
    with told(BadSetting, "^p( is not a regular expression"):
        Consumer(broker.bootstrap, ["^p.*", "^p("], group=fresh("group"))


def test_str_and_bytes_are_formats(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])
    with Producer(broker.bootstrap, key=bytes, value=str) as producer:
        producer.send(topic, "tea", key=b"k")
    with Consumer(broker.bootstrap, topic, key=str, value=str, **QUICK) as consumer:
        assert [(each.key, each.value) for each in consumer.read(stop_at_end=True)] == [("k", "tea")]
    with Consumer(broker.bootstrap, topic, key=STRING, value=bytes, **QUICK) as consumer:
        assert [(each.key, each.value) for each in consumer.read(stop_at_end=True)] == [("k", b"tea")]


def test_a_format_s_class_is_a_format_if_that_is_enough(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])
    with Producer(broker.bootstrap, value=Avro("string"), registry=broker.http) as producer:
        producer.send(topic, "tea")
    read: Any = Avro
    with Consumer(broker.bootstrap, topic, value=read, registry=broker.http, **QUICK) as consumer:
        assert [message.value for message in consumer.read(stop_at_end=True)] == ["tea"]
    with told(BadSetting, "give Protobuf(...)"):
        Producer(broker.bootstrap, value=Protobuf, registry=broker.http)


def test_a_producer_names_the_registry_that_is_down(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])
    registry = {"url": "http://127.0.0.1:1", "max.retries": 0}
    with (
        Producer(broker.bootstrap, value=Avro("string"), registry=registry) as producer,
        told(Unreachable, "no schema registry answers at http://127.0.0.1:1: connection refused"),
    ):
        producer.send(topic, "tea")
    assert producer.counts.sent == 0


def test_an_address_of_something_else_is_no_registry_s(broker: BrokerProcess) -> None:
    topic, elsewhere = topic_of(broker.bootstrap, []), f"{broker.http}/nowhere"
    with (
        Producer(broker.bootstrap, value=Avro("string"), registry=elsewhere) as producer,
        told(Unreachable, f"the server at {elsewhere} is not a schema registry"),
    ):
        producer.send(topic, "tea")


def test_values_of_settings_become_text(broker: BrokerProcess) -> None:
    topic = fresh("topic")
    with Admin(broker.bootstrap) as admin:
        admin.create_topic(topic, configs={"retention.ms": 1000})
        admin.alter_topic_configs(topic, sets={"retention.ms": 100_000, "preallocate": True})
        assert admin.describe_topic(topic).configs == {"retention.ms": "100000", "preallocate": "true"}
        with told(BadSetting, "among `unsets`"):
            admin.alter_topic_configs(topic, sets={"retention.ms": None})  # type: ignore[dict-item]


def test_a_partition_that_is_not_there_is_not_a_topic_that_is_not_there(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [], partitions=2)
    with Admin(broker.bootstrap) as admin:
        with told(ClientError, f"{topic} has no partition 9, only 0 to 1"):
            admin.set_group_offsets(fresh("group"), {(topic, 9): 1})
        with told(NoSuchTopic, "there is no topic nowhere"):
            admin.set_group_offsets(fresh("group"), {("nowhere", 0): 1})


def test_a_topic_that_is_deleted_is_not_called_by_its_reader_s_group(broker: BrokerProcess) -> None:
    topic, group = topic_of(broker.bootstrap, numbers(3)), fresh("group")
    with Consumer(broker.bootstrap, topic, group=group, auto_commit=False, **QUICK) as consumer:
        next(iter(consumer))
        with Admin(broker.bootstrap) as admin:
            admin.delete_topic(topic)
        with pytest.raises(ClientError) as raised:
            consumer.commit()
    assert "topic group" not in str(raised.value)


def test_what_is_too_large_for_the_topic_is_not_to_be_sent_again(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])
    with Admin(broker.bootstrap) as admin:
        admin.alter_topic_configs(topic, sets={"max.message.bytes": 1000})
    with Producer(broker.bootstrap) as producer:
        producer.send(topic, bytes(5000))
        with pytest.raises(DeliveryFailed, match=r"raise max\.message\.bytes") as raised:
            producer.flush()
    assert "again" not in str(raised.value)


def test_a_partition_that_a_topic_does_not_have_is_told_as_such(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])
    with told(ClientError, "give no partition, or an existing one"), Producer(broker.bootstrap) as producer:
        producer.send(topic, b"x", partition=99)


def test_too_few_replicas_in_sync_are_not_nobody_at_all() -> None:
    with Cluster(3, settings={"min.insync.replicas": 2}) as cluster:
        cluster.create_topic("orders", replicas=3)
        cluster.kill(2)
        cluster.kill(3)
        with (
            told(DeliveryFailed, "not acknowledged within 3,000 ms"),
            Producer(cluster.bootstrap, delivery_timeout_ms=3000) as producer,
        ):
            producer.send("orders", b"x")


def test_a_twin_sends_many_and_waits_for_all(broker: BrokerProcess) -> None:
    topic = topic_of(broker.bootstrap, [])

    async def story() -> None:
        async with AsyncProducer(broker.bootstrap, queue_buffering_max_messages=100) as producer:
            assert await producer.send_all(topic, numbers(1000)) == 1000
            assert producer.counts == (1000, 1000, 0, 0)

    asyncio.run(story())
    with Consumer(broker.bootstrap, topic, **QUICK) as consumer:
        assert sorted(int(message.value) for message in consumer.read(stop_at_end=True)) == list(range(1000))
