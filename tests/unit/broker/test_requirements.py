"""What each API requires of its principal, as Kafka's documentation of authorization lists it."""

from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.dispatch import HANDLERS, Context, HangUp, call, load_handlers
from headrace.broker.image import ClusterImage, TopicImage
from headrace.protocol.message import Message
from headrace.protocol.schema.api_versions import ApiVersionsRequest
from headrace.protocol.schema.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.protocol.schema.fetch import FetchRequest, FetchTopic, ReplicaState
from headrace.protocol.schema.find_coordinator import FindCoordinatorRequest
from headrace.protocol.schema.heartbeat import HeartbeatRequest
from headrace.protocol.schema.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.security.authorization import Action, AllowAll
from headrace.security.listeners import Listener, SecurityProtocol
from headrace.security.principals import Principal

TOPIC_ID = b"orders".ljust(16)
ALICE = Principal("alice")
LISTENER = Listener("PLAINTEXT", SecurityProtocol.PLAINTEXT, is_inter_broker=True)

REQUIRED = {
    "PRODUCE": "WRITE on TOPIC, WRITE on TRANSACTIONAL_ID",
    "FETCH": "READ on TOPIC, CLUSTER_ACTION on CLUSTER",
    "LIST_OFFSETS": "DESCRIBE on TOPIC",
    "METADATA": "DESCRIBE on TOPIC",
    "OFFSET_COMMIT": "READ on GROUP, READ on TOPIC",
    "OFFSET_FETCH": "DESCRIBE on GROUP, DESCRIBE on TOPIC",
    "FIND_COORDINATOR": "DESCRIBE on GROUP, DESCRIBE on TRANSACTIONAL_ID",
    "JOIN_GROUP": "READ on GROUP",
    "HEARTBEAT": "READ on GROUP",
    "LEAVE_GROUP": "READ on GROUP",
    "SYNC_GROUP": "READ on GROUP",
    "SASL_HANDSHAKE": "",
    "SASL_AUTHENTICATE": "",
    "DESCRIBE_USER_SCRAM_CREDENTIALS": "DESCRIBE on CLUSTER",
    "ALTER_USER_SCRAM_CREDENTIALS": "ALTER on CLUSTER",
    "DESCRIBE_GROUPS": "DESCRIBE on GROUP",
    "LIST_GROUPS": "DESCRIBE on CLUSTER",
    "API_VERSIONS": "",
    "CREATE_TOPICS": "CREATE on TOPIC",
    "DELETE_TOPICS": "DELETE on TOPIC",
    "DELETE_RECORDS": "DELETE on TOPIC",
    "INIT_PRODUCER_ID": "WRITE on TRANSACTIONAL_ID, IDEMPOTENT_WRITE on CLUSTER",
    "OFFSET_FOR_LEADER_EPOCH": "DESCRIBE on TOPIC",
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
    "ALTER_PARTITION": "CLUSTER_ACTION on CLUSTER",
    "DESCRIBE_CLUSTER": "",
    "DESCRIBE_PRODUCERS": "READ on TOPIC",
    "ADD_PARTITIONS_TO_TXN": "WRITE on TRANSACTIONAL_ID, WRITE on TOPIC, CLUSTER_ACTION on CLUSTER",
    "ADD_OFFSETS_TO_TXN": "WRITE on TRANSACTIONAL_ID, READ on GROUP",
    "END_TXN": "WRITE on TRANSACTIONAL_ID",
    "WRITE_TXN_MARKERS": "ALTER on CLUSTER",
    "TXN_OFFSET_COMMIT": "WRITE on TRANSACTIONAL_ID, READ on GROUP, READ on TOPIC",
    "DESCRIBE_TRANSACTIONS": "DESCRIBE on TRANSACTIONAL_ID",
    "LIST_TRANSACTIONS": "DESCRIBE on TRANSACTIONAL_ID",
    "BROKER_HEARTBEAT": "CLUSTER_ACTION on CLUSTER",
    "UNREGISTER_BROKER": "ALTER on CLUSTER",
    "CONSUMER_GROUP_HEARTBEAT": "READ on GROUP",
    "CONSUMER_GROUP_DESCRIBE": "DESCRIBE on GROUP",
    "LIST_CONFIG_RESOURCES": "DESCRIBE_CONFIGS on CLUSTER",
    "DESCRIBE_TOPIC_PARTITIONS": "DESCRIBE on TOPIC",
    "UPDATE_METADATA": "CLUSTER_ACTION on CLUSTER",
    "ENVELOPE": "CLUSTER_ACTION on CLUSTER",
    "STEP_DOWN": "CLUSTER_ACTION on CLUSTER",
    "BROKER_METRICS": "DESCRIBE on CLUSTER",
}
AMONG_BROKERS = {"ALTER_PARTITION", "BROKER_HEARTBEAT", "UPDATE_METADATA", "ENVELOPE", "STEP_DOWN"}


def test_every_api_declares_what_it_requires() -> None:
    load_handlers()

    assert {each.key.name: ", ".join(map(str, each.requires)) for each in HANDLERS.values()} == REQUIRED


def test_messages_among_brokers_are_for_the_inter_broker_listener() -> None:
    load_handlers()

    assert {each.key.name for each in HANDLERS.values() if each.inter_broker} == AMONG_BROKERS


def actions(request: Message) -> list[str]:
    load_handlers()
    image = ClusterImage("cluster")
    image.put_topic(TopicImage("orders", TOPIC_ID, {0: [1]}, {}))
    assert request.__api_key__ is not None
    required = HANDLERS[request.__api_key__].requires
    return [str(action) for each in required for action in each.actions(request, image)]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), ["READ on GROUP 'g'"]),
        (
            DeleteTopicsRequest(
                topics=[
                    DeleteTopicState(name="a", topic_id=bytes(16)),
                    DeleteTopicState(name=None, topic_id=TOPIC_ID),
                ],
                timeout_ms=1,
            ),
            ["DELETE on TOPIC 'a'", "DELETE on TOPIC 'orders'"],
        ),
        (
            FetchRequest(topics=[FetchTopic(topic="a", partitions=[])], max_wait_ms=0, min_bytes=0),
            ["READ on TOPIC 'a'"],
        ),
        (
            FetchRequest(
                topics=[FetchTopic(topic="a", partitions=[])],
                max_wait_ms=0,
                min_bytes=0,
                replica_state=ReplicaState(replica_id=2, replica_epoch=1),
            ),
            ["CLUSTER_ACTION on CLUSTER 'kafka-cluster'"],
        ),
        (
            FindCoordinatorRequest(key_type=1, coordinator_keys=["t"]),
            ["DESCRIBE on TRANSACTIONAL_ID 't'"],
        ),
        (
            IncrementalAlterConfigsRequest(
                resources=[
                    AlterConfigsResource(resource_type=2, resource_name="orders", configs=[]),
                    AlterConfigsResource(resource_type=4, resource_name="1", configs=[]),
                ],
                validate_only=False,
            ),
            ["ALTER_CONFIGS on TOPIC 'orders'", "ALTER_CONFIGS on CLUSTER 'kafka-cluster'"],
        ),
    ],
)
def test_a_request_names_its_resources(request_: Message, expected: list[str]) -> None:
    assert actions(request_) == expected


class DenyAll(AllowAll):
    def denied(self, _principal: Principal, _host: str, actions: Any) -> list[Action]:
        return list(actions)


def test_a_request_that_is_not_authorized_is_not_handled() -> None:
    load_handlers()
    broker: Any = SimpleNamespace(authorizer=DenyAll(), image=ClusterImage("cluster"))
    context = Context(broker, LISTENER, None, 4, "10.0.0.7", ALICE)
    heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert heartbeat.__api_key__ is not None

    with pytest.raises(HangUp, match=r"User:alice from 10\.0\.0\.7 lacks READ on GROUP 'g'"):
        call(HANDLERS[heartbeat.__api_key__], heartbeat, context)


def test_what_requires_nothing_is_open_to_all() -> None:
    load_handlers()
    broker: Any = SimpleNamespace(authorizer=DenyAll(), image=ClusterImage("cluster"))
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    assert request.__api_key__ is not None

    assert call(HANDLERS[request.__api_key__], request, Context(broker, LISTENER, None, 4)).error_code == 0
