"""Every API at every version that the broker advertises is answered in a form that this version has."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from headrace.broker.dispatch import HANDLERS, load_handlers
from headrace.protocol.api import request_class
from headrace.protocol.errors import ErrorCode
from headrace.protocol.frame import encode_frame
from headrace.protocol.headers import encode_request_header
from headrace.protocol.message import Message
from headrace.protocol.schema.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from headrace.protocol.schema.api_versions import ApiVersionsRequest
from headrace.protocol.schema.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from headrace.protocol.schema.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.protocol.schema.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.protocol.schema.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.protocol.schema.describe_cluster import DescribeClusterRequest
from headrace.protocol.schema.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from headrace.protocol.schema.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from headrace.protocol.schema.describe_producers import DescribeProducersRequest
from headrace.protocol.schema.describe_producers import TopicRequest as DescribeProducersTopic
from headrace.protocol.schema.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
)
from headrace.protocol.schema.describe_topic_partitions import TopicRequest as DescribedTopic
from headrace.protocol.schema.find_coordinator import FindCoordinatorRequest
from headrace.protocol.schema.incremental_alter_configs import AlterableConfig as IncrementalConfig
from headrace.protocol.schema.incremental_alter_configs import AlterConfigsResource as IncrementalResource
from headrace.protocol.schema.incremental_alter_configs import IncrementalAlterConfigsRequest
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.init_producer_id import InitProducerIdRequest
from headrace.protocol.schema.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic
from headrace.protocol.schema.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from headrace.protocol.schema.request_header import RequestHeader
from headrace.protocol.structs import all_defaults
from wire.raw import RawClient
from wire.requests import create_topic, fetch_request, fresh_name, produce, produce_request

load_handlers()
ADVERTISED: Final = [(handler.key, version) for handler in HANDLERS.values() for version in handler.versions]
TOPIC, BROKER = 2, 4
SET = 0


class Target:
    """What the requests of one test are about: a topic of two partitions with a record in the first."""

    def __init__(self, client: RawClient) -> None:
        self.name = fresh_name("every-api")
        self.id = create_topic(client, self.name, partitions=2)
        self.client = client
        assert produce(client, self.name).error_code == 0


def _metadata(target: Target, version: int) -> Message:
    return MetadataRequest(topics=[MetadataRequestTopic(name=target.name)] if version else ())


def _delete_topics(target: Target, version: int) -> Message:
    if version < 6:
        return DeleteTopicsRequest(topic_names=[target.name], timeout_ms=5000)
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=target.id)], timeout_ms=5000)


REQUESTS: Final[dict[int, Callable[[Target, int], Message]]] = {
    ApiKey.PRODUCE: lambda t, v: produce_request(t.name if v < 13 else t.id),
    ApiKey.FETCH: lambda t, v: fetch_request(t.name if v < 13 else t.id, max_wait_ms=100),
    ApiKey.LIST_OFFSETS: lambda t, _: ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(name=t.name, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
        ],
    ),
    ApiKey.METADATA: _metadata,
    ApiKey.FIND_COORDINATOR: lambda _, v: (
        FindCoordinatorRequest(key="group") if v < 4 else FindCoordinatorRequest(coordinator_keys=["group"])
    ),
    ApiKey.API_VERSIONS: lambda _, __: ApiVersionsRequest(
        client_software_name="tests", client_software_version="1.0"
    ),
    ApiKey.CREATE_TOPICS: lambda *_: CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=fresh_name("made"), num_partitions=1, replication_factor=1, assignments=(), configs=()
            )
        ],
        timeout_ms=5000,
    ),
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.DELETE_RECORDS: lambda t, _: DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(name=t.name, partitions=[DeleteRecordsPartition(partition_index=0, offset=-1)])
        ],
        timeout_ms=5000,
    ),
    ApiKey.INIT_PRODUCER_ID: lambda *_: InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=1
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: lambda t, _: OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[
            OffsetForLeaderTopic(
                topic=t.name, partitions=[OffsetForLeaderPartition(partition=0, leader_epoch=0)]
            )
        ],
    ),
    ApiKey.DESCRIBE_CONFIGS: lambda t, _: DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=TOPIC, resource_name=t.name, configuration_keys=None),
            DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=None),
        ],
        include_synonyms=True,
        include_documentation=True,
    ),
    ApiKey.ALTER_CONFIGS: lambda t, _: AlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=TOPIC,
                resource_name=t.name,
                configs=[AlterableConfig(name="retention.ms", value="1000")],
            )
        ],
        validate_only=False,
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: lambda t, _: IncrementalAlterConfigsRequest(
        resources=[
            IncrementalResource(
                resource_type=TOPIC,
                resource_name=t.name,
                configs=[IncrementalConfig(name="retention.ms", config_operation=SET, value="1000")],
            )
        ],
        validate_only=False,
    ),
    ApiKey.DESCRIBE_LOG_DIRS: lambda t, _: DescribeLogDirsRequest(
        topics=[DescribableLogDirTopic(topic=t.name, partitions=[0, 1])]
    ),
    ApiKey.CREATE_PARTITIONS: lambda t, _: CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=t.name, count=3, assignments=None)],
        timeout_ms=5000,
        validate_only=False,
    ),
    ApiKey.DESCRIBE_CLUSTER: lambda *_: DescribeClusterRequest(include_cluster_authorized_operations=True),
    ApiKey.DESCRIBE_PRODUCERS: lambda t, _: DescribeProducersRequest(
        topics=[DescribeProducersTopic(name=t.name, partition_indexes=[0])]
    ),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: lambda t, _: DescribeTopicPartitionsRequest(
        topics=[DescribedTopic(name=t.name)], cursor=None
    ),
}

MAY_FAIL: Final = {ApiKey.FIND_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE}  # not there yet


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

    assert raw.ask(ApiVersionsRequest(), 0).error_code == 0


def test_what_is_advertised_is_what_there_are_handlers_for(raw: RawClient) -> None:
    answer = raw.ask(ApiVersionsRequest(), 4)

    advertised = {
        (each.api_key, version)
        for each in answer.api_keys
        for version in range(each.min_version, each.max_version + 1)
    }
    produce_before_batches = {(int(ApiKey.PRODUCE), version) for version in range(3)}
    assert advertised - produce_before_batches == {(int(key), version) for key, version in ADVERTISED}


@pytest.mark.parametrize("version", [5, 99, 32767])
def test_an_unknown_version_of_api_versions_is_answered_in_v0_with_what_there_is(
    raw: RawClient, version: int
) -> None:
    header = RequestHeader(
        request_api_key=ApiKey.API_VERSIONS, request_api_version=version, correlation_id=7, client_id="x"
    )
    raw.socket.sendall(b"".join(encode_frame(encode_request_header(header), [b"from the future"])))

    answer = raw.receive(ApiVersionsRequest(), 0)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert ApiKey.API_VERSIONS in [each.api_key for each in answer.api_keys]
    assert raw.ask(ApiVersionsRequest(), 4).error_code == 0
