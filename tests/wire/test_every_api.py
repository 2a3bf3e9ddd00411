"""Every API at every version that the broker advertises is answered in a form that this version has."""

from pathlib import Path
from typing import Any, Final

import pytest

from headrace.protocol.api import request_class
from headrace.protocol.compiled.structs import all_defaults
from headrace.protocol.compression import Compression
from headrace.protocol.errors import ErrorCode
from headrace.protocol.frame import encode_frame
from headrace.protocol.headers import encode_request_header
from headrace.protocol.schema.api_versions import ApiVersionsRequest
from headrace.protocol.schema.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.protocol.schema.describe_cluster import DescribeClusterRequest
from headrace.protocol.schema.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from headrace.protocol.schema.describe_quorum import DescribeQuorumRequest
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.init_producer_id import InitProducerIdRequest
from headrace.protocol.schema.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic
from headrace.protocol.schema.request_header import RequestHeader
from headrace.protocol.schema.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from support.records import make_batch
from wire.every_request import ADVERTISED, REQUESTS, Target
from wire.process import BrokerProcess
from wire.raw import RawClient
from wire.requests import ASK_VERSIONS, create_topic, fresh_name, produce

MAY_FAIL: Final = {  # these are about a group, a member, a transaction or a directory that is not there
    ApiKey.SASL_HANDSHAKE: ErrorCode.ILLEGAL_SASL_STATE,  # the listener does not use SASL
    ApiKey.SASL_AUTHENTICATE: ErrorCode.ILLEGAL_SASL_STATE,
    ApiKey.CREATE_DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,  # nobody authenticates
    ApiKey.RENEW_DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    ApiKey.EXPIRE_DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    ApiKey.CREATE_ACLS: ErrorCode.SECURITY_DISABLED,  # the broker has no authorizer
    ApiKey.DESCRIBE_ACLS: ErrorCode.SECURITY_DISABLED,
    ApiKey.DELETE_ACLS: ErrorCode.SECURITY_DISABLED,
    ApiKey.JOIN_GROUP: ErrorCode.MEMBER_ID_REQUIRED,
    ApiKey.SYNC_GROUP: ErrorCode.UNKNOWN_MEMBER_ID,
    ApiKey.HEARTBEAT: ErrorCode.UNKNOWN_MEMBER_ID,
    ApiKey.LEAVE_GROUP: ErrorCode.UNKNOWN_MEMBER_ID,
    ApiKey.OFFSET_DELETE: ErrorCode.GROUP_ID_NOT_FOUND,
    ApiKey.DESCRIBE_GROUPS: ErrorCode.GROUP_ID_NOT_FOUND,
    ApiKey.DELETE_GROUPS: ErrorCode.GROUP_ID_NOT_FOUND,
    ApiKey.CONSUMER_GROUP_DESCRIBE: ErrorCode.GROUP_ID_NOT_FOUND,
    ApiKey.ALTER_PARTITION: ErrorCode.STALE_BROKER_EPOCH,
    ApiKey.ELECT_LEADERS: ErrorCode.ELECTION_NOT_NEEDED,
    ApiKey.ALTER_REPLICA_LOG_DIRS: ErrorCode.LOG_DIR_NOT_FOUND,
    ApiKey.ADD_OFFSETS_TO_TXN: ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ApiKey.END_TXN: ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ApiKey.TXN_OFFSET_COMMIT: ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ApiKey.DESCRIBE_TRANSACTIONS: ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
}


def error_codes(value: Any) -> set[int]:
    """Every error code anywhere in a response."""
    if isinstance(value, list | tuple):
        return set().union(*map(error_codes, value))
    found: set[int] = set()
    for field in getattr(type(value), "__fields__", ()):
        held = getattr(value, field.name)
        found |= {held} if field.name == "error_code" else error_codes(held)
    return found


@pytest.mark.parametrize(("key", "version"), ADVERTISED, ids=lambda each: getattr(each, "name", str(each)))
def test_every_version_of_every_api_answers_as_that_version(
    raw: RawClient, key: ApiKey, version: int
) -> None:
    target = Target(raw)

    response = raw.ask(REQUESTS[key](target, version), version)

    assert error_codes(response) - {MAY_FAIL.get(key)} <= {0}


@pytest.mark.parametrize(("key", "version"), ADVERTISED, ids=lambda each: getattr(each, "name", str(each)))
def test_a_request_with_nothing_in_it_is_answered_too(raw: RawClient, key: ApiKey, version: int) -> None:
    empty = all_defaults(request_class(key))

    if key == ApiKey.PRODUCE:  # that has acks=0: no answer is the answer
        raw.send(empty, version)
    else:
        assert raw.ask(empty, version) is not None

    assert raw.ask(ASK_VERSIONS, 0).error_code == 0


def test_what_is_advertised_is_what_there_are_handlers_for(raw: RawClient) -> None:
    answer = raw.ask(ASK_VERSIONS, 4)

    advertised = {
        (each.api_key, version)
        for each in answer.api_keys
        for version in range(each.min_version, each.max_version + 1)
    }
    produce_before_batches = {(int(ApiKey.PRODUCE), version) for version in range(3)}
    assert advertised - produce_before_batches == {(int(key), version) for key, version in ADVERTISED}


@pytest.mark.parametrize("version", [6, 99, 32767])
def test_an_unknown_version_of_api_versions_is_answered_in_v0_with_what_there_is(
    raw: RawClient, version: int
) -> None:
    header = RequestHeader(
        request_api_key=ApiKey.API_VERSIONS, request_api_version=version, correlation_id=7, client_id="x"
    )
    raw.socket.sendall(b"".join(encode_frame(encode_request_header(header), [b"from the future"])))

    answer = raw.receive(ASK_VERSIONS, 0)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert ApiKey.API_VERSIONS in [each.api_key for each in answer.api_keys]
    assert raw.ask(ASK_VERSIONS, 4).error_code == 0


@pytest.mark.parametrize("version", [10, 11])
def test_metadata_by_id_is_refused_in_versions_that_only_have_the_field(raw: RawClient, version: int) -> None:
    topic_id = create_topic(raw, fresh_name("too-early"))
    asked = [MetadataRequestTopic(name=None, topic_id=topic_id), MetadataRequestTopic(name=None)]

    topics = raw.ask(MetadataRequest(topics=asked), version).topics

    assert [topic.error_code for topic in topics] == [ErrorCode.INVALID_REQUEST] * 2


MANY = 20_000
TOLERABLE_CPU_S = 5.0


def test_naming_one_thing_many_times_does_not_multiply_the_work(
    raw: RawClient, broker: BrokerProcess
) -> None:
    """Each of these took the broker from five to thirty seconds, or hundreds of megabytes."""
    create_topic(raw, name := fresh_name("again"), partitions=10)
    produce(raw, name, make_batch([b"x" * 5000] * 100, compression=Compression.GZIP))
    youngest = ListOffsetsPartition(partition_index=0, timestamp=-3)
    described = DescribeConfigsResource(resource_type=2, resource_name=name, configuration_keys=None)
    bad_topic = CreatableTopic(name="/", num_partitions=1, replication_factor=1, assignments=(), configs=())
    before = broker.cpu_s

    offsets = raw.ask(
        ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=[youngest] * MANY)]),
        7,
    )
    metadata = raw.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)] * MANY), 12)
    configs = raw.ask(DescribeConfigsRequest(resources=[described] * MANY, include_synonyms=True), 4)
    topics = raw.ask(CreateTopicsRequest(topics=[bad_topic] * MANY, timeout_ms=1000), 7)

    assert broker.cpu_s - before < TOLERABLE_CPU_S
    assert error_codes(offsets) == {ErrorCode.INVALID_REQUEST}
    assert len(metadata.topics) == len(configs.results) == len(topics.topics) == 1
    assert error_codes(topics) == {ErrorCode.INVALID_REQUEST}


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize(
    ("name", "software_version"),
    [
        ("", "1"),
        ("a", ""),
        ("a b", "1"),
        ("-a", "1"),
        ("a.", "1"),
        ("a_b", "1"),
        ("é", "1"),
        ("a\n", "1"),
        ("a", "1 0"),
    ],
)
def test_a_client_that_misnames_its_software_is_refused(
    raw: RawClient, name: str, software_version: str, version: int
) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=software_version)

    answer = raw.ask(request, version)

    assert (answer.error_code, list(answer.api_keys)) == (ErrorCode.INVALID_REQUEST, [])
    assert raw.ask(ASK_VERSIONS, version).error_code == ErrorCode.NONE


def test_the_name_of_the_software_does_not_matter_where_a_request_has_none(raw: RawClient) -> None:
    assert raw.ask(ApiVersionsRequest(), 2).error_code == ErrorCode.NONE


def test_a_client_that_expects_another_broker_is_told_to_rebootstrap(raw: RawClient) -> None:
    cluster_id = raw.ask(DescribeClusterRequest(include_cluster_authorized_operations=False), 0).cluster_id

    def asked(cluster: str | None, node: int) -> tuple[ErrorCode, bool]:
        request = ApiVersionsRequest(
            client_software_name="tests", client_software_version="1", cluster_id=cluster, node_id=node
        )
        answer = raw.ask(request, 5)
        return ErrorCode(answer.error_code), bool(answer.api_keys)

    assert asked(cluster_id, 1) == (ErrorCode.NONE, True)
    assert asked(cluster_id, 2) == (ErrorCode.REBOOTSTRAP_REQUIRED, False)
    assert asked("another", 1) == (ErrorCode.REBOOTSTRAP_REQUIRED, False)
    assert asked(None, -1) == (ErrorCode.NONE, True)
    assert asked(cluster_id, -1) == asked(None, 1) == (ErrorCode.INVALID_REQUEST, False)


def test_unstable_versions_are_neither_listed_nor_accepted_unless_they_are_enabled(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
    with RawClient(broker.bootstrap) as client:
        assert newest(client, ApiKey.INIT_PRODUCER_ID) == 5
        assert client.ask(request, 5).error_code == ErrorCode.NONE
        client.send(request, 6)
        assert client.is_closed_by_the_broker()
    settings = {"unstable.api.versions.enable": "true"}
    with BrokerProcess(tmp_path, settings) as enabled, RawClient(enabled.bootstrap) as client:
        assert newest(client, ApiKey.INIT_PRODUCER_ID) == 6
        assert client.ask(request, 6).error_code == ErrorCode.NONE


def newest(client: RawClient, key: ApiKey) -> int:
    listed = client.ask(ASK_VERSIONS, 4).api_keys
    return max(int(each.max_version) for each in listed if each.api_key == key)


def test_features_have_fixed_levels(raw: RawClient) -> None:
    listed = raw.ask(ASK_VERSIONS, 4)
    levels = {"group.version": 1, "transaction.version": 2}
    assert {each.name: each.max_version for each in listed.supported_features} == levels
    assert {each.name: each.max_version_level for each in listed.finalized_features} == levels

    def update(feature: str, level: int, version: int) -> Any:
        update = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=3)
        return raw.ask(UpdateFeaturesRequest(feature_updates=[update]), version)

    for version in range(3):
        assert update("group.version", 1, version).error_code == ErrorCode.NONE
        for feature, level in (("group.version", 0), ("group.version", 2), ("metadata.version", 25)):
            answer = update(feature, level, version)
            assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
            assert f"{feature} cannot be set to {level}" in answer.error_message


def test_only_the_metadata_partition_has_a_quorum(raw: RawClient) -> None:
    answer = raw.ask(DescribeQuorumRequest(topics=[]), 2)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
