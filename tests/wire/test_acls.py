"""ACLs that administrators create and delete: what other people's clients may do, on every broker."""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from cluster.waiting import until
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.describe_acls import DescribeAclsRequest
from headrace.protocol.schema.init_producer_id import InitProducerIdRequest
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic
from wire.guarded import CLIENTS, address, guarded_cluster, log_in, user
from wire.raw import RawClient
from wire.requests import fresh_name
from wire.secured import SecuredCluster

BROKERS: Final = 2
CHANGED: Final = "the changed ACL is in force"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with guarded_cluster(tmp_path_factory.mktemp("acls"), BROKERS) as running:
        yield running


@pytest.fixture(scope="module")
def admin(cluster: SecuredCluster) -> AdminClient:
    return AdminClient(user(cluster, "admin"))


def allow(admin: AdminClient, who: str, operation: AclOperation, name: str, **more: Any) -> AclBinding:
    binding = AclBinding(
        more.get("type", ResourceType.TOPIC),
        name,
        more.get("pattern", ResourcePatternType.LITERAL),
        who,
        more.get("host", "*"),
        operation,
        more.get("permission", AclPermissionType.ALLOW),
    )
    for future in admin.create_acls([binding]).values():
        future.result()
    return binding


def make_topic(admin: AdminClient, prefix: str = "guarded") -> str:
    name = fresh_name(prefix)
    admin.create_topics([NewTopic(name, num_partitions=1)])[name].result()
    return name


def write(settings: dict[str, Any], topic: str) -> KafkaError | None:
    """Write a record; return the error."""
    producer = Producer({**settings, "message.timeout.ms": 10_000})
    errors: list[KafkaError | None] = []
    producer.produce(topic, b"v", callback=lambda error, _: errors.append(error))
    producer.flush(20)
    return errors[0]


def test_a_permission_is_in_force_on_every_broker_and_can_be_taken_back(
    cluster: SecuredCluster, admin: AdminClient
) -> None:
    topic = make_topic(admin)
    error = write(user(cluster, "alice"), topic)
    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED

    binding = allow(admin, "User:alice", AclOperation.WRITE, topic)
    until(CHANGED, lambda: write(user(cluster, "alice"), topic) is None)
    for broker in range(BROKERS):
        with RawClient(address(cluster, CLIENTS, broker)) as client:
            log_in(client, "alice")
            until(CHANGED, partial(sees, client, topic))

    filter_ = AclBindingFilter(*(getattr(binding, name) for name in FIELDS))
    (deleted,) = (future.result() for future in admin.delete_acls([filter_]).values())
    assert [each.principal for each in deleted] == ["User:alice"]
    for broker in range(BROKERS):
        with RawClient(address(cluster, CLIENTS, broker)) as client:
            log_in(client, "alice")
            until(CHANGED, partial(sees, client, topic, wanted=False))


FIELDS: Final = (
    *("restype", "name", "resource_pattern_type", "principal", "host", "operation", "permission_type"),
)


def sees(client: RawClient, topic: str, *, wanted: bool = True) -> bool:
    (answer,) = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 12).topics
    return (answer.error_code == ErrorCode.NONE) is wanted


def test_a_consumer_needs_the_topic_and_the_group(cluster: SecuredCluster, admin: AdminClient) -> None:
    topic = make_topic(admin, "team-a")
    assert write(user(cluster, "admin"), topic) is None
    allow(admin, "User:bob", AclOperation.READ, "team-a", pattern=ResourcePatternType.PREFIXED)

    assert read_error(cluster, topic) == KafkaError.GROUP_AUTHORIZATION_FAILED
    allow(admin, "User:bob", AclOperation.READ, "readers", type=ResourceType.GROUP)
    until(CHANGED, lambda: read_error(cluster, topic) is None)

    allow(admin, "User:bob", AclOperation.READ, topic, permission=AclPermissionType.DENY)
    until(CHANGED, lambda: read_error(cluster, topic) == KafkaError.TOPIC_AUTHORIZATION_FAILED)


def read_error(cluster: SecuredCluster, topic: str) -> int | None:
    """Read the first record of a topic as bob; return the code of the first error."""
    settings = user(cluster, "bob", group_id="readers", auto_offset_reset="earliest")
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe([topic])
    try:
        while True:
            message = consumer.poll(20)
            assert message is not None, "neither a record nor an error"
            error = message.error()
            return None if error is None else int(error.code())
    finally:
        consumer.close()


def test_an_idempotent_producer_needs_no_permission_but_to_write_to_a_topic(
    cluster: SecuredCluster, admin: AdminClient
) -> None:
    topic = make_topic(admin)
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
    allow(admin, "User:alice", AclOperation.WRITE, topic)

    with RawClient(address(cluster, CLIENTS)) as client:
        log_in(client, "alice")
        until(CHANGED, lambda: client.ask(request, 4).error_code == 0)
    with RawClient(address(cluster, CLIENTS)) as client:
        log_in(client, "bob")
        assert client.ask(request, 4).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_only_administrators_change_acls(cluster: SecuredCluster) -> None:
    with pytest.raises(KafkaException) as refused:
        allow(AdminClient(user(cluster, "alice")), "User:alice", AclOperation.ALL, "mine")

    assert refused.value.args[0].code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED


def test_acls_survive_a_restart(cluster: SecuredCluster, admin: AdminClient) -> None:
    allow(admin, "User:carol", AclOperation.READ, "kept", host="10.0.0.1")
    broker = cluster.brokers[1]
    broker.stop()
    broker.start()

    described = DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter="User:carol",
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    with RawClient(address(cluster, CLIENTS, broker=1)) as client:
        log_in(client, "admin")
        (resource,) = client.ask(described, 3).resources
    assert resource.resource_name == "kept"
    assert [each.host for each in resource.acls] == ["10.0.0.1"]
