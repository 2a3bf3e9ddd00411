"""Every API as every kind of principal: Headrace refuses what Apache Kafka refuses, with the same codes."""

from collections.abc import Container, Iterator, Sequence
from typing import Any, Final, NamedTuple

import pytest

from cluster.waiting import until
from compat.guarded_kafka import GuardedKafka
from compat.kafka_tools.java import KafkaJava
from headrace.protocol.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.schema.create_acls import AclCreation, CreateAclsRequest
from headrace.protocol.schema.describe_acls import DescribeAclsRequest
from headrace.protocol.schema.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from headrace.protocol.schema.fetch import ReplicaState
from headrace.protocol.schema.find_coordinator import FindCoordinatorRequest
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic
from headrace.security.acls import WILDCARD, PermissionType
from headrace.security.authorization import CLUSTER_NAME, OPERATIONS, Operation, Permission, ResourceType
from wire.every_request import ADVERTISED, REQUESTS, Target
from wire.guarded import CLIENTS, address, guarded_cluster, log_in
from wire.raw import RawClient
from wire.requests import ASK_VERSIONS, create_topic, fetch_request, fresh_name

UNAUTHORIZED: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
CODES: Final = {"error_code", "partition_error_code"}
OPERATIONS_FIELDS: Final = {
    *("topic_authorized_operations", "cluster_authorized_operations", "authorized_operations")
}
NOT_COMPARED: Final = {
    ApiKey.ALTER_PARTITION,  # among brokers, and among brokers and controllers in Kafka
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.SASL_HANDSHAKE,  # come before there is a principal
    ApiKey.SASL_AUTHENTICATE,
}
LAST: Final = (ApiKey.DELETE_RECORDS, ApiKey.DELETE_GROUPS, ApiKey.DELETE_TOPICS)
TYPES: Final = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID)
PERMISSIONS: Final = [
    *(Permission(operation, type_) for type_ in TYPES for operation in (*OPERATIONS[type_], Operation.ALL)),
    Permission(Operation.DELETE, ResourceType.CLUSTER),
]


class Kind(NamedTuple):
    """A kind of principal: what it is allowed, and what it is denied."""

    allowed: Sequence[Permission] = ()
    denied: Sequence[Permission] = ()

    @property
    def user(self) -> str:
        words = [f"{each.operation.name}-{each.resource_type.name}" for each in self.allowed]
        words += [f"not-{each.operation.name}-{each.resource_type.name}" for each in self.denied]
        return "-".join(words).lower() or "nobody"


EVERYTHING: Final = [Permission(Operation.ALL, each) for each in TYPES]
KINDS: Final = [
    Kind(),
    *(Kind([each]) for each in PERMISSIONS),
    *(Kind(EVERYTHING, [Permission(Operation.DESCRIBE, each)]) for each in TYPES),
    *(Kind(EVERYTHING, [Permission(Operation.WRITE, each)]) for each in TYPES),
]
OFTEN: Final = [
    Kind(),
    Kind([Permission(Operation.READ, ResourceType.TOPIC)]),
    Kind([Permission(Operation.WRITE, ResourceType.TOPIC)]),
    Kind([Permission(Operation.ALL, ResourceType.GROUP)]),
    Kind([Permission(Operation.WRITE, ResourceType.TRANSACTIONAL_ID)]),
    Kind([Permission(Operation.ALL, ResourceType.CLUSTER)]),
    Kind(EVERYTHING, [Permission(Operation.DESCRIBE, ResourceType.TOPIC)]),
]
"""The kinds that every run compares."""


class Server(NamedTuple):
    address: str
    supported: dict[int, range]


@pytest.fixture(scope="module")
def servers(kafka_java: KafkaJava, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    """Headrace and Apache Kafka, with one principal and one topic of each kind."""
    users = [kind.user for kind in KINDS]
    with (
        GuardedKafka(kafka_java, tmp_path_factory.mktemp("kafka"), users) as kafka,
        guarded_cluster(tmp_path_factory.mktemp("headrace"), 1, users) as headrace,
    ):
        yield [_server(each) for each in (address(headrace, CLIENTS), kafka.users_at)]


def _server(at: str) -> Server:
    with RawClient(at) as client:
        versions = client.ask(ASK_VERSIONS, 3).api_keys
    return Server(at, {each.api_key: range(each.min_version, each.max_version + 1) for each in versions})


@pytest.mark.parametrize(
    "kind",
    [pytest.param(each, marks=() if each in OFTEN else pytest.mark.long, id=each.user) for each in KINDS],
)
def test_a_principal_is_refused_and_told_what_apache_kafka_tells(servers: list[Server], kind: Kind) -> None:
    requests = _compared(servers)
    headrace, kafka = (_answers(server, kind, requests) for server in servers)

    assert headrace == kafka


@pytest.mark.parametrize("kind", [OFTEN[0], OFTEN[1]], ids=lambda kind: kind.user)
@pytest.mark.parametrize("version", [4, 12, 13, 17])
def test_followers_are_refused_as_apache_kafka_refuses_them(
    servers: list[Server], kind: Kind, version: int
) -> None:
    """READ on the topic does not suffice; a topic that does not exist gets the same answer."""
    headrace, kafka = (_follower_fetches(server, kind, version) for server in servers)

    assert headrace == kafka
    assert headrace == [(ErrorCode.NONE, [ErrorCode.TOPIC_AUTHORIZATION_FAILED])] * 2


def _follower_fetches(server: Server, kind: Kind, version: int) -> list[tuple[int, list[int]]]:
    """Return the error codes of a Fetch of a follower, for a topic and for one that does not exist."""
    with RawClient(server.address) as admin, RawClient(server.address) as client:
        target = _target(log_in(admin, "admin"))
        _create_acls(admin, kind)
        log_in(client, kind.user)
        found = []
        for topic in (target.name, fresh_name()) if version < 13 else (target.id, bytes(range(16))):
            request = fetch_request(topic, max_wait_ms=100)
            field, value = (
                ("replica_id", 1) if version < 15 else ("replica_state", ReplicaState(replica_id=1))
            )
            setattr(request, field, value)
            response = client.ask(request, version)
            codes = [part.error_code for each in response.responses for part in each.partitions]
            found.append((response.error_code, codes))
    return found


def _compared(servers: Sequence[Server]) -> list[tuple[ApiKey, int]]:
    """The oldest and the newest version of every API that both have; what deletes comes last."""
    versions: dict[ApiKey, list[int]] = {}
    for key, version in ADVERTISED:
        if key not in NOT_COMPARED and all(version in each.supported.get(key, ()) for each in servers):
            versions.setdefault(key, []).append(version)
    ordered = sorted(versions, key=lambda key: LAST.index(key) if key in LAST else -1)
    return [(key, each) for key in ordered for each in dict.fromkeys((versions[key][0], versions[key][-1]))]


def _answers(server: Server, kind: Kind, requests: list[tuple[ApiKey, int]]) -> dict[str, Any]:
    with RawClient(server.address) as admin, RawClient(server.address) as client:
        target = _target(log_in(admin, "admin"))
        _create_acls(admin, kind)
        log_in(client, kind.user)
        return {
            f"{key.name} v{version}": _told(client.ask(_request(key, target, version), version))
            for key, version in requests
        }


def _request(key: ApiKey, target: Target, version: int) -> Message:
    if key == ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS:  # Kafka does not answer a refused request for all users
        return DescribeUserScramCredentialsRequest(users=[UserName(name="nobody")])
    return REQUESTS[key](target, version)


def _target(admin: RawClient) -> Target:
    """A topic that has a leader; Kafka answers before its broker knows of the topic."""
    target = Target.__new__(Target)
    target.name, target.client = fresh_name("compared"), admin
    target.id = create_topic(admin, target.name, partitions=2)
    request = MetadataRequest(topics=[MetadataRequestTopic(name=target.name)])
    until("the topic is known", lambda: _codes(admin.ask(request, 12)) == set())
    for key_type in (0, 1):  # has the topics for groups and transactions created
        admin.ask(FindCoordinatorRequest(key="group", key_type=key_type), version=1)
    return target


def _create_acls(admin: RawClient, kind: Kind) -> None:
    """Create the ACLs of a principal; Kafka answers before they are in force."""
    rules = [(each, PermissionType.ALLOW) for each in kind.allowed]
    rules += [(each, PermissionType.DENY) for each in kind.denied]
    creations = [_creation(kind.user, each, type_) for each, type_ in rules]
    assert _codes(admin.ask(CreateAclsRequest(creations=creations), 3)) == set()
    request = DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=f"User:{kind.user}",
        host_filter=None,
        operation=1,
        permission_type=1,
    )

    def are_in_force() -> bool:
        return sum(len(each.acls) for each in admin.ask(request, 3).resources) == len(creations)

    until("the ACLs are in force", are_in_force)


def _creation(user: str, permission: Permission, permission_type: PermissionType) -> AclCreation:
    is_cluster = permission.resource_type is ResourceType.CLUSTER
    return AclCreation(
        resource_type=permission.resource_type,
        resource_name=CLUSTER_NAME if is_cluster else WILDCARD,
        principal=f"User:{user}",
        host=WILDCARD,
        operation=permission.operation,
        permission_type=permission_type,
    )


def _told(response: Any) -> list[str]:
    """The refusals in a response, and the operations that it says are authorized."""
    refused = _codes(response) & UNAUTHORIZED
    return [*sorted(code.name for code in refused), *sorted(set(_values(response, OPERATIONS_FIELDS)))]


def _codes(response: Any) -> set[ErrorCode]:
    return {ErrorCode(code) for code in _values(response, CODES)} - {ErrorCode.NONE}


def _values(value: Any, names: Container[str]) -> Iterator[Any]:
    """Yield the values of the fields with these names, anywhere in a message."""
    if isinstance(value, list | tuple):
        for each in value:
            yield from _values(each, names)
    for field in getattr(type(value), "__fields__", ()):
        held = getattr(value, field.name)
        if field.name in names:
            yield held
        else:
            yield from _values(held, names)
