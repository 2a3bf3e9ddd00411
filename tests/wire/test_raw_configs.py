"""Settings of topics, brokers and groups, request by request."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from headrace.protocol.schema.describe_producers import DescribeProducersRequest, ProducerState, TopicRequest
from headrace.protocol.schema.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.testing.cluster import Cluster
from support.records import make_batch
from wire.configs import BROKER, DELETE, GROUP, SET, TOPIC, alter, describe, listed
from wire.group_stories.waiting import eventually
from wire.process import BrokerProcess
from wire.raw import RawClient
from wire.requests import ASK_VERSIONS, create_topic, fetch, produce, records_in


@pytest.mark.parametrize("resource", ["", "1"])
def test_broker_settings_that_cannot_be_together_are_refused(raw: RawClient, resource: str) -> None:
    lags = {"log.cleaner.min.compaction.lag.ms": "10", "log.cleaner.max.compaction.lag.ms": "5"}

    code, message = alter(raw, BROKER, resource, *((name, SET, value) for name, value in lags.items()))

    assert code == ErrorCode.INVALID_REQUEST
    assert "min.compaction.lag.ms=10 is larger than" in message
    assert [each.value for each in describe(raw, BROKER, "1", *lags)] == [str(2**63 - 1), "0"]


def test_the_names_of_resources_may_be_anything(own_broker: BrokerProcess) -> None:
    """They are parts of paths in ZooKeeper."""
    names = [".", "..", "a/b", "/", "%2F", "a b", "é\U0001f600", "<default>", "x" * 32_000]
    with RawClient(own_broker.bootstrap) as client:
        for name in names:
            answer = alter(client, GROUP, name, ("consumer.session.timeout.ms", SET, "50000"))
            assert answer == (ErrorCode.NONE, "")
    own_broker.kill()
    own_broker.start()

    with RawClient(own_broker.bootstrap) as client:
        assert sorted(listed(client, GROUP)) == sorted((GROUP, name) for name in names)
        assert listed(client) == [(BROKER, "1"), *listed(client, GROUP)]
        for name in names:
            (described,) = describe(client, GROUP, name, "consumer.session.timeout.ms")
            assert (described.value, described.config_source) == ("50000", 8)
            alter(client, GROUP, name, ("consumer.session.timeout.ms", DELETE, None))
        assert listed(client, GROUP) == []


def test_the_number_of_connections_can_be_changed_while_the_broker_runs(own_broker: BrokerProcess) -> None:
    overrides = "max.connections.per.ip.overrides"
    with RawClient(own_broker.bootstrap) as first:
        changes = [
            ("1", overrides, "127.0.0.1:1"),
            ("", "max.connections", "1"),
            ("", "max.connections.per.ip", "1"),
        ]
        for resource, name, value in changes:
            assert alter(first, BROKER, resource, (name, SET, value)) == (ErrorCode.NONE, "")
            with RawClient(own_broker.bootstrap) as second:
                assert second.is_closed_by_the_broker()
            assert alter(first, BROKER, resource, (name, DELETE, None)) == (ErrorCode.NONE, "")
        with RawClient(own_broker.bootstrap) as second:
            assert second.ask(ASK_VERSIONS, 3).error_code == ErrorCode.NONE


def test_settings_that_several_brokers_change_at_once_are_all_kept() -> None:
    names = ["retention.ms", "segment.ms", "flush.ms"]
    with Cluster(brokers=3, topics=["shared"]) as cluster:
        clients = [RawClient(cluster.bootstrap_of(broker_id)) for broker_id in cluster.brokers]
        for turn in range(10, 15):
            for client, name in zip(clients, names, strict=True):
                change = AlterableConfig(name=name, config_operation=SET, value=str(turn))
                resource = AlterConfigsResource(resource_type=TOPIC, resource_name="shared", configs=[change])
                client.send(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
            request = IncrementalAlterConfigsRequest(resources=(), validate_only=False)
            answers = [client.receive(request, 1).responses[0] for client in clients]
            assert [each.error_code for each in answers] == [ErrorCode.NONE] * 3, answers
        # Whoever changes them next reads what is in ZooKeeper, and then describes that.
        assert alter(clients[0], TOPIC, "shared") == (ErrorCode.NONE, "")
        assert {each.value for each in describe(clients[0], TOPIC, "shared", *names)} == {"14"}
        for client in clients:
            client.close()


def test_one_request_describes_a_bounded_number_of_groups(raw: RawClient) -> None:
    resources = [
        DescribeConfigsResource(resource_type=GROUP, resource_name=str(number), configuration_keys=["none"])
        for number in range(510)
    ]

    answer = raw.ask(DescribeConfigsRequest(resources=resources), version=4)

    codes = [each.error_code for each in answer.results]
    assert codes == [ErrorCode.NONE] * 500 + [ErrorCode.INVALID_REQUEST] * 10


@pytest.mark.parametrize("kind", [BROKER, GROUP])
def test_settings_without_end_are_refused(raw: RawClient, kind: int) -> None:
    name = "1" if kind == BROKER else "endless"

    code, message = alter(
        raw, kind, name, *((f"unknown.{number}", SET, "x" * 30_000) for number in range(10))
    )

    assert code == ErrorCode.INVALID_REQUEST
    assert "expected at most 262144" in message


def test_the_cleaner_and_the_memory_of_producers_change_while_the_broker_runs(tmp_path: Path) -> None:
    never = str(3_600_000)
    given = {"log.cleaner.backoff.ms": never, "log.retention.check.interval.ms": "50"}
    with BrokerProcess(tmp_path / "cleaned", given) as broker, RawClient(broker.bootstrap) as client:
        create_topic(
            client, "compacted", cleanup_policy="compact", min_cleanable_dirty_ratio="0", segment_bytes="100"
        )
        now_ms = int(time.time() * 1000)  # a producer expires by the time of its last record
        for sequence in range(5):
            batch = make_batch(1, timestamps=now_ms, producer_id=7, producer_epoch=0, base_sequence=sequence)
            assert produce(client, "compacted", batch).error_code == ErrorCode.NONE
        assert [each.producer_id for each in producers(client, "compacted")] == [7]

        changes = [("log.cleaner.backoff.ms", SET, "100"), ("producer.id.expiration.ms", SET, "1")]
        assert alter(client, BROKER, "", *changes) == (ErrorCode.NONE, "")

        eventually(lambda: len(records_in(fetch(client, "compacted"))) < 5)
        eventually(lambda: producers(client, "compacted") == [])


def producers(client: RawClient, topic: str) -> Sequence[ProducerState]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    (answer,) = client.ask(request, 0).topics[0].partitions
    assert answer.error_code == ErrorCode.NONE, answer
    found: Sequence[ProducerState] = list(answer.active_producers)
    return found
