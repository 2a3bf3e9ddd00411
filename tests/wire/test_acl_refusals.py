"""Every API refuses who may do nothing with Kafka's error code, and reveals nothing."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.describe_cluster import DescribeClusterRequest
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.list_groups import ListGroupsRequest
from headrace.protocol.schema.metadata import MetadataRequest
from wire.every_request import ADVERTISED, REQUESTS, Target
from wire.guarded import CLIENTS, OPEN, address, guarded_cluster, log_in
from wire.raw import RawClient
from wire.secured import SecuredCluster

EVERYBODY: Final = {ApiKey.API_VERSIONS, ApiKey.DESCRIBE_CLUSTER}
LISTS: Final = {ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS}  # empty for who may see nothing
CODES: Final = {"error_code", "partition_error_code"}
TOPIC, GROUP, CLUSTER, TRANSACTION = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
REFUSED: Final = {
    TOPIC: {
        *(ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA, ApiKey.CREATE_TOPICS),
        *(ApiKey.DELETE_TOPICS, ApiKey.DELETE_RECORDS, ApiKey.OFFSET_FOR_LEADER_EPOCH),
        *(ApiKey.DESCRIBE_CONFIGS, ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS),
        *(ApiKey.CREATE_PARTITIONS, ApiKey.DESCRIBE_PRODUCERS, ApiKey.DESCRIBE_TOPIC_PARTITIONS),
    },
    GROUP: {
        *(ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP),
        *(ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.SYNC_GROUP, ApiKey.DESCRIBE_GROUPS),
        *(ApiKey.DELETE_GROUPS, ApiKey.OFFSET_DELETE, ApiKey.CONSUMER_GROUP_HEARTBEAT),
        ApiKey.CONSUMER_GROUP_DESCRIBE,
    },
    TRANSACTION: {
        *(ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT),
        ApiKey.DESCRIBE_TRANSACTIONS,
    },
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with guarded_cluster(tmp_path_factory.mktemp("acls"), brokers=1) as running:
        yield running


@pytest.fixture
def anonymous(cluster: SecuredCluster) -> Iterator[RawClient]:
    with RawClient(address(cluster, OPEN)) as client:
        yield client


@pytest.fixture(scope="module")
def target(cluster: SecuredCluster) -> Target:
    """A topic whose records only super users may see."""
    with RawClient(address(cluster, CLIENTS)) as client:
        return Target(log_in(client, "admin"))


def refusals(response: Any) -> set[ErrorCode]:
    """Every error code anywhere in a response. Requests are about one resource each."""
    if isinstance(response, list | tuple):
        return set().union(*map(refusals, response))
    found: set[ErrorCode] = set()
    for field in getattr(type(response), "__fields__", ()):
        held = getattr(response, field.name)
        found |= {ErrorCode(held)} if field.name in CODES else refusals(held)
    return found - {ErrorCode.NONE}


def expected(key: ApiKey, version: int) -> set[ErrorCode]:
    if key in EVERYBODY or key in LISTS or (key == ApiKey.METADATA and version == 0):
        return set()
    if key in {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}:
        return {ErrorCode.ILLEGAL_SASL_STATE}
    if key.name.endswith("DELEGATION_TOKEN"):  # nobody is authenticated on a PLAINTEXT listener
        return {ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED}
    if key == ApiKey.DESCRIBE_LOG_DIRS and version < 3:
        return set()  # older responses have no place for an error, and are empty
    if key == ApiKey.ADD_PARTITIONS_TO_TXN:
        return {TRANSACTION if version < 4 else CLUSTER}
    if key == ApiKey.DESCRIBE_CONFIGS:  # of a topic and of a broker
        return {TOPIC, CLUSTER}
    return {next((code for code, keys in REFUSED.items() if key in keys), CLUSTER)}


@pytest.mark.parametrize(("key", "version"), ADVERTISED, ids=lambda each: getattr(each, "name", str(each)))
def test_who_may_do_nothing_is_refused_by_every_api(
    target: Target, anonymous: RawClient, key: ApiKey, version: int
) -> None:
    request = REQUESTS[key](target, version)
    response = anonymous.ask(request, version)

    assert refusals(response) == expected(key, version)
    if target.name not in repr(request):  # the topic was named by its id
        assert target.name not in repr(response)


@pytest.mark.parametrize(("key", "version"), ADVERTISED, ids=lambda each: getattr(each, "name", str(each)))
def test_a_resource_that_does_not_exist_is_refused_with_the_same_answer(
    target: Target, anonymous: RawClient, key: ApiKey, version: int
) -> None:
    missing = Target.__new__(Target)
    missing.name, missing.id, missing.client = target.name[::-1], target.id, target.client

    answers = [anonymous.ask(REQUESTS[key](each, version), version) for each in (target, missing)]

    assert refusals(answers[0]) == refusals(answers[1])


@pytest.mark.usefixtures("target")
def test_lists_leave_out_what_may_not_be_seen(anonymous: RawClient) -> None:
    assert anonymous.ask(MetadataRequest(topics=None), 12).topics == []
    assert anonymous.ask(ListGroupsRequest(), 5).groups == []
    assert anonymous.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), 1).brokers
    described = anonymous.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), 1)
    assert described.cluster_authorized_operations == 0
