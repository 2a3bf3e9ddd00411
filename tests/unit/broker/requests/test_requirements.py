"""What each API requires of its principal, as Kafka's documentation of authorization lists it."""

from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.image import ClusterImage
from headrace.broker.requests.dispatch import HANDLERS, Context, call, load_handlers
from headrace.broker.requests.requirements import Requirement, config_action
from headrace.broker.security.audit import AuditLog
from headrace.protocol.api import response_class
from headrace.protocol.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.schema.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
)
from headrace.protocol.schema.api_versions import ApiVersionsRequest
from headrace.protocol.schema.fetch import FetchRequest, FetchTopic, ReplicaState
from headrace.protocol.schema.heartbeat import HeartbeatRequest, HeartbeatResponse
from headrace.security.authorization import CLUSTER_NAME, Authorizer, Operation, Permission, ResourceType
from headrace.security.listeners import Listener, SecurityProtocol
from headrace.security.principals import Principal

ALICE = Principal("alice")
LISTENER = Listener("PLAINTEXT", SecurityProtocol.PLAINTEXT, is_inter_broker=True)

REQUIRED = {
    "PRODUCE": "WRITE on TOPIC, WRITE on TRANSACTIONAL_ID",
    "FETCH": "READ on TOPIC, CLUSTER_ACTION on CLUSTER",
    "LIST_OFFSETS": "DESCRIBE on TOPIC, CLUSTER_ACTION on CLUSTER",
    "METADATA": "DESCRIBE on TOPIC, CREATE on TOPIC, CREATE on CLUSTER",
    "OFFSET_COMMIT": "READ on GROUP, READ on TOPIC",
    "OFFSET_FETCH": "DESCRIBE on GROUP, DESCRIBE on TOPIC",
    "FIND_COORDINATOR": "DESCRIBE on GROUP, DESCRIBE on TRANSACTIONAL_ID",
    "JOIN_GROUP": "READ on GROUP",
    "HEARTBEAT": "READ on GROUP",
    "LEAVE_GROUP": "READ on GROUP",
    "SYNC_GROUP": "READ on GROUP",
    "SASL_HANDSHAKE": "",
    "SASL_AUTHENTICATE": "",
    "DESCRIBE_CLIENT_QUOTAS": "DESCRIBE_CONFIGS on CLUSTER",
    "ALTER_CLIENT_QUOTAS": "ALTER_CONFIGS on CLUSTER",
    "DESCRIBE_USER_SCRAM_CREDENTIALS": "DESCRIBE on CLUSTER",
    "ALTER_USER_SCRAM_CREDENTIALS": "ALTER on CLUSTER",
    "DESCRIBE_GROUPS": "DESCRIBE on GROUP",
    "LIST_GROUPS": "DESCRIBE on GROUP, DESCRIBE on CLUSTER",
    "API_VERSIONS": "",
    "CREATE_TOPICS": "CREATE on TOPIC, CREATE on CLUSTER, DESCRIBE_CONFIGS on TOPIC",
    "DELETE_TOPICS": "DELETE on TOPIC, DESCRIBE on TOPIC, DELETE on CLUSTER",
    "DELETE_RECORDS": "DELETE on TOPIC",
    "INIT_PRODUCER_ID": "WRITE on TRANSACTIONAL_ID, TWO_PHASE_COMMIT on TRANSACTIONAL_ID, "
    "IDEMPOTENT_WRITE on CLUSTER, WRITE on TOPIC",
    "OFFSET_FOR_LEADER_EPOCH": "DESCRIBE on TOPIC, CLUSTER_ACTION on CLUSTER",
    "CREATE_DELEGATION_TOKEN": "CREATE_TOKENS on USER",
    "RENEW_DELEGATION_TOKEN": "",
    "EXPIRE_DELEGATION_TOKEN": "",
    "DESCRIBE_DELEGATION_TOKEN": "DESCRIBE on DELEGATION_TOKEN, DESCRIBE_TOKENS on USER",
    "CREATE_ACLS": "ALTER on CLUSTER",
    "DESCRIBE_ACLS": "DESCRIBE on CLUSTER",
    "DELETE_ACLS": "ALTER on CLUSTER",
    "DESCRIBE_CONFIGS": "DESCRIBE_CONFIGS on TOPIC, DESCRIBE_CONFIGS on GROUP, DESCRIBE_CONFIGS on CLUSTER",
    "ALTER_CONFIGS": "ALTER_CONFIGS on TOPIC, ALTER_CONFIGS on GROUP, ALTER_CONFIGS on CLUSTER",
    "ALTER_REPLICA_LOG_DIRS": "ALTER on CLUSTER",
    "DESCRIBE_LOG_DIRS": "DESCRIBE on CLUSTER",
    "CREATE_PARTITIONS": "ALTER on TOPIC",
    "DELETE_GROUPS": "DELETE on GROUP",
    "ELECT_LEADERS": "ALTER on CLUSTER",
    "INCREMENTAL_ALTER_CONFIGS": "ALTER_CONFIGS on TOPIC, ALTER_CONFIGS on GROUP, ALTER_CONFIGS on CLUSTER",
    "ALTER_PARTITION_REASSIGNMENTS": "ALTER on CLUSTER",
    "LIST_PARTITION_REASSIGNMENTS": "DESCRIBE on CLUSTER",
    "OFFSET_DELETE": "DELETE on GROUP, READ on TOPIC",
    "DESCRIBE_QUORUM": "DESCRIBE on CLUSTER",
    "UPDATE_FEATURES": "ALTER on CLUSTER",
    "ALTER_PARTITION": "CLUSTER_ACTION on CLUSTER",
    "DESCRIBE_CLUSTER": "",
    "DESCRIBE_PRODUCERS": "READ on TOPIC",
    "ADD_PARTITIONS_TO_TXN": "WRITE on TRANSACTIONAL_ID, WRITE on TOPIC, CLUSTER_ACTION on CLUSTER",
    "ADD_OFFSETS_TO_TXN": "WRITE on TRANSACTIONAL_ID, READ on GROUP",
    "END_TXN": "WRITE on TRANSACTIONAL_ID",
    "WRITE_TXN_MARKERS": "ALTER on CLUSTER, CLUSTER_ACTION on CLUSTER",
    "TXN_OFFSET_COMMIT": "WRITE on TRANSACTIONAL_ID, READ on GROUP, READ on TOPIC",
    "DESCRIBE_TRANSACTIONS": "DESCRIBE on TRANSACTIONAL_ID, DESCRIBE on TOPIC",
    "LIST_TRANSACTIONS": "DESCRIBE on TRANSACTIONAL_ID",
    "BROKER_HEARTBEAT": "CLUSTER_ACTION on CLUSTER",
    "UNREGISTER_BROKER": "ALTER on CLUSTER",
    "CONSUMER_GROUP_HEARTBEAT": "READ on GROUP, DESCRIBE on TOPIC",
    "CONSUMER_GROUP_DESCRIBE": "DESCRIBE on GROUP, DESCRIBE on TOPIC",
    "LIST_CONFIG_RESOURCES": "DESCRIBE_CONFIGS on CLUSTER",
    "DESCRIBE_TOPIC_PARTITIONS": "DESCRIBE on TOPIC",
    "UPDATE_METADATA": "CLUSTER_ACTION on CLUSTER",
    "ENVELOPE": "CLUSTER_ACTION on CLUSTER",
    "STEP_DOWN": "CLUSTER_ACTION on CLUSTER",
    "SEED_REPLICA": "CLUSTER_ACTION on CLUSTER",
    "BROKER_METRICS": "DESCRIBE on CLUSTER",
}
AMONG_BROKERS = {
    "ALTER_PARTITION",
    "BROKER_HEARTBEAT",
    "UPDATE_METADATA",
    "ENVELOPE",
    "STEP_DOWN",
    "SEED_REPLICA",
}


def test_every_api_declares_what_it_requires() -> None:
    load_handlers()

    assert {each.key.name: ", ".join(map(str, each.requires)) for each in HANDLERS.values()} == REQUIRED


def test_messages_among_brokers_are_for_the_inter_broker_listener() -> None:
    load_handlers()

    assert {each.key.name for each in HANDLERS.values() if each.inter_broker} == AMONG_BROKERS


def required_of(request: Message) -> list[str]:
    """Return what dispatch checks before the handler is called."""
    load_handlers()
    assert request.__api_key__ is not None
    requires = [each for each in HANDLERS[request.__api_key__].requires if isinstance(each, Requirement)]
    named = ((each, each.name(request)) for each in requires)
    return [f"{each} {name!r}" for each, name in named if name is not None]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), ["READ on GROUP 'g'"]),
        (FetchRequest(topics=[FetchTopic(topic="a", partitions=[])], max_wait_ms=0, min_bytes=0), []),
        (
            FetchRequest(
                topics=[FetchTopic(topic="a", partitions=[])],
                max_wait_ms=0,
                min_bytes=0,
                replica_state=ReplicaState(replica_id=2, replica_epoch=1),
            ),
            [],  # the handler refuses each partition
        ),
        (
            AddPartitionsToTxnRequest(
                transactions=[
                    AddPartitionsToTxnTransaction(
                        transactional_id="t", producer_id=1, producer_epoch=0, topics=()
                    )
                ]
            ),
            ["CLUSTER_ACTION on CLUSTER 'kafka-cluster'"],
        ),
    ],
)
def test_a_request_names_the_resource_that_all_of_it_is_about(request_: Message, expected: list[str]) -> None:
    assert required_of(request_) == expected


def test_a_request_that_is_refused_as_a_whole_has_an_error_code_at_its_top() -> None:
    load_handlers()

    for handler in HANDLERS.values():
        if any(isinstance(each, Requirement) for each in handler.requires):
            names = {declared.name for declared in response_class(handler.key).__fields__}
            assert "error_code" in names, handler.key


class DenyAll(Authorizer):
    def allows(self, *_what: Any) -> bool:
        return False


def test_a_request_that_is_not_authorized_is_not_handled() -> None:
    load_handlers()
    broker: Any = SimpleNamespace(audit=AuditLog(), image=ClusterImage("cluster"))
    context = Context(broker, LISTENER, None, 4, "10.0.0.7", ALICE, authorizer=DenyAll())
    heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert heartbeat.__api_key__ is not None

    response = call(HANDLERS[heartbeat.__api_key__], heartbeat, context).reply

    assert response == HeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert broker.audit.total == 1


def test_what_requires_nothing_is_open_to_all() -> None:
    load_handlers()
    broker: Any = SimpleNamespace(
        image=ClusterImage("cluster"), controller_client=SimpleNamespace(versions=None), handlers=HANDLERS
    )
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    assert request.__api_key__ is not None
    context = Context(broker, LISTENER, None, 4, authorizer=DenyAll())

    response: Any = call(HANDLERS[request.__api_key__], request, context).reply
    assert response.error_code == 0


@pytest.mark.parametrize(
    ("resource_type", "expected"),
    [
        (2, (Permission(Operation.ALTER_CONFIGS, ResourceType.TOPIC), "a")),
        (32, (Permission(Operation.ALTER_CONFIGS, ResourceType.GROUP), "a")),
        (4, (Permission(Operation.ALTER_CONFIGS, ResourceType.CLUSTER), CLUSTER_NAME)),
        (99, (Permission(Operation.ALTER_CONFIGS, ResourceType.CLUSTER), CLUSTER_NAME)),
    ],
)
def test_configs_of_topics_and_groups_have_permissions_of_their_own(
    resource_type: int, expected: tuple[Permission, str]
) -> None:
    assert config_action(Operation.ALTER_CONFIGS, resource_type, "a") == expected
