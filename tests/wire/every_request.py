"""A request that makes sense for every API at every version that the broker advertises."""

from collections.abc import Callable
from typing import Final

from headrace.broker.requests.dispatch import HANDLERS, enabled, load_handlers
from headrace.protocol.message import Message
from headrace.protocol.schema.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from headrace.protocol.schema.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from headrace.protocol.schema.alter_partition import AlterPartitionRequest
from headrace.protocol.schema.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.protocol.schema.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from headrace.protocol.schema.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from headrace.protocol.schema.api_versions import ApiVersionsRequest
from headrace.protocol.schema.broker_heartbeat import BrokerHeartbeatRequest
from headrace.protocol.schema.create_acls import AclCreation, CreateAclsRequest
from headrace.protocol.schema.create_delegation_token import CreateDelegationTokenRequest
from headrace.protocol.schema.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from headrace.protocol.schema.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.protocol.schema.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from headrace.protocol.schema.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.protocol.schema.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.protocol.schema.describe_acls import DescribeAclsRequest
from headrace.protocol.schema.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from headrace.protocol.schema.describe_cluster import DescribeClusterRequest
from headrace.protocol.schema.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from headrace.protocol.schema.describe_delegation_token import DescribeDelegationTokenRequest
from headrace.protocol.schema.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from headrace.protocol.schema.describe_producers import DescribeProducersRequest
from headrace.protocol.schema.describe_producers import TopicRequest as DescribeProducersTopic
from headrace.protocol.schema.describe_quorum import DescribeQuorumRequest
from headrace.protocol.schema.describe_quorum import (
    DescribeQuorumRequestPartitionData as DescribeQuorumPartition,
)
from headrace.protocol.schema.describe_quorum import DescribeQuorumRequestTopicData as DescribeQuorumTopic
from headrace.protocol.schema.describe_topic_partitions import DescribeTopicPartitionsRequest
from headrace.protocol.schema.describe_topic_partitions import TopicRequest as DescribedTopic
from headrace.protocol.schema.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from headrace.protocol.schema.elect_leaders import ElectLeadersRequest, TopicPartitions
from headrace.protocol.schema.expire_delegation_token import ExpireDelegationTokenRequest
from headrace.protocol.schema.find_coordinator import FindCoordinatorRequest
from headrace.protocol.schema.incremental_alter_configs import AlterableConfig as IncrementalConfig
from headrace.protocol.schema.incremental_alter_configs import AlterConfigsResource as IncrementalResource
from headrace.protocol.schema.incremental_alter_configs import IncrementalAlterConfigsRequest
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.init_producer_id import InitProducerIdRequest
from headrace.protocol.schema.list_config_resources import ListConfigResourcesRequest
from headrace.protocol.schema.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headrace.protocol.schema.list_partition_reassignments import ListPartitionReassignmentsRequest
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic
from headrace.protocol.schema.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from headrace.protocol.schema.renew_delegation_token import RenewDelegationTokenRequest
from headrace.protocol.schema.sasl_authenticate import SaslAuthenticateRequest
from headrace.protocol.schema.sasl_handshake import SaslHandshakeRequest
from headrace.protocol.schema.unregister_broker import UnregisterBrokerRequest
from headrace.protocol.schema.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from wire.every_group_request import GROUP_REQUESTS, GroupRequest
from wire.every_transaction_request import TRANSACTION_REQUESTS, TransactionRequest
from wire.raw import RawClient
from wire.requests import create_topic, fetch_request, fresh_name, produce, produce_request

load_handlers()
ADVERTISED: Final = [
    (handler.key, version)
    for handler in enabled(HANDLERS, unstable=False).values()
    for version in handler.versions
    if isinstance(handler.key, ApiKey)
]
TOPIC, BROKER = 2, 4
SET = 0


class Target:
    """What the requests of one test are about: a topic of two partitions with a record in the first."""

    def __init__(self, client: RawClient) -> None:
        self.name = fresh_name("every-api")
        self.id = create_topic(client, self.name, partitions=2)
        self.client = client
        assert produce(client, self.name).error_code == 0
        for key_type in (0, 1):  # has the topics for groups and transactions created
            client.ask(FindCoordinatorRequest(key="group", key_type=key_type), version=1)


def _metadata(target: Target, version: int) -> Message:
    return MetadataRequest(topics=[MetadataRequestTopic(name=target.name)] if version else ())


def _delete_topics(target: Target, version: int) -> Message:
    if version < 6:
        return DeleteTopicsRequest(topic_names=[target.name], timeout_ms=5000)
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=target.id)], timeout_ms=5000)


def _about_a_group(make: GroupRequest) -> Callable[[Target, int], Message]:
    return lambda target, version: make(target.name, target.id, version)


def _about_a_transaction(make: TransactionRequest) -> Callable[[Target, int], Message]:
    return lambda target, version: make(target.name, target.id, version)


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
    ApiKey.CREATE_DELEGATION_TOKEN: lambda *_: CreateDelegationTokenRequest(renewers=(), max_lifetime_ms=-1),
    ApiKey.RENEW_DELEGATION_TOKEN: lambda *_: RenewDelegationTokenRequest(hmac=b"?", renew_period_ms=-1),
    ApiKey.EXPIRE_DELEGATION_TOKEN: lambda *_: ExpireDelegationTokenRequest(
        hmac=b"?", expiry_time_period_ms=-1
    ),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: lambda *_: DescribeDelegationTokenRequest(owners=None),
    ApiKey.CREATE_ACLS: lambda t, _: CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=TOPIC,
                resource_name=t.name,
                principal="User:nobody",
                host="*",
                operation=3,
                permission_type=3,
            )
        ]
    ),
    ApiKey.DESCRIBE_ACLS: lambda *_: DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    ),
    ApiKey.DELETE_ACLS: lambda t, _: DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=TOPIC,
                resource_name_filter=t.name,
                principal_filter=None,
                host_filter=None,
                operation=1,
                permission_type=1,
            )
        ]
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
    ApiKey.ALTER_REPLICA_LOG_DIRS: lambda t, _: AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path="/nowhere", topics=[AlterReplicaLogDirTopic(name=t.name, partitions=[0, 1])]
            )
        ]
    ),
    ApiKey.LIST_CONFIG_RESOURCES: lambda _, v: ListConfigResourcesRequest(
        resource_types=[TOPIC] if v else ()
    ),
    ApiKey.DESCRIBE_LOG_DIRS: lambda t, _: DescribeLogDirsRequest(
        topics=[DescribableLogDirTopic(topic=t.name, partitions=[0, 1])]
    ),
    ApiKey.CREATE_PARTITIONS: lambda t, _: CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=t.name, count=3, assignments=None)],
        timeout_ms=5000,
        validate_only=False,
    ),
    ApiKey.SASL_HANDSHAKE: lambda *_: SaslHandshakeRequest(mechanism="PLAIN"),
    ApiKey.SASL_AUTHENTICATE: lambda *_: SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: lambda *_: DescribeClientQuotasRequest(
        components=[ComponentData(entity_type="client-id", match_type=2, match=None)], strict=True
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: lambda t, _: AlterClientQuotasRequest(
        entries=[
            AlterClientQuotasRequestEntryData(
                entity=[EntityData(entity_type="client-id", entity_name=t.name)],
                ops=[OpData(key="producer_byte_rate", value=1e9, remove=False)],
            )
        ],
        validate_only=False,
    ),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: lambda *_: DescribeUserScramCredentialsRequest(users=None),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: lambda t, _: AlterUserScramCredentialsRequest(
        deletions=(),
        upsertions=[
            ScramCredentialUpsertion(
                name=t.name, mechanism=1, iterations=4096, salt=b"salt", salted_password=b"salted"
            )
        ],
    ),
    ApiKey.DESCRIBE_CLUSTER: lambda *_: DescribeClusterRequest(include_cluster_authorized_operations=True),
    ApiKey.DESCRIBE_QUORUM: lambda *_: DescribeQuorumRequest(
        topics=[
            DescribeQuorumTopic(
                topic_name="__cluster_metadata", partitions=[DescribeQuorumPartition(partition_index=0)]
            )
        ]
    ),
    ApiKey.UPDATE_FEATURES: lambda *_: UpdateFeaturesRequest(
        feature_updates=[FeatureUpdateKey(feature="group.version", max_version_level=1)]
    ),
    ApiKey.DESCRIBE_PRODUCERS: lambda t, _: DescribeProducersRequest(
        topics=[DescribeProducersTopic(name=t.name, partition_indexes=[0])]
    ),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: lambda t, _: DescribeTopicPartitionsRequest(
        topics=[DescribedTopic(name=t.name)], cursor=None
    ),
    ApiKey.ALTER_PARTITION: lambda *_: AlterPartitionRequest(broker_id=1, broker_epoch=-1, topics=[]),
    ApiKey.BROKER_HEARTBEAT: lambda *_: BrokerHeartbeatRequest(
        broker_id=1, current_metadata_offset=0, want_fence=False, want_shut_down=False
    ),
    ApiKey.ELECT_LEADERS: lambda t, _: ElectLeadersRequest(
        topic_partitions=[TopicPartitions(topic=t.name, partitions=[0])]
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda t, _: AlterPartitionReassignmentsRequest(
        topics=[
            ReassignableTopic(
                name=t.name, partitions=[ReassignablePartition(partition_index=0, replicas=[1])]
            )
        ]
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: lambda *_: ListPartitionReassignmentsRequest(),
    ApiKey.UNREGISTER_BROKER: lambda *_: UnregisterBrokerRequest(broker_id=99),
    **{key: _about_a_group(make) for key, make in GROUP_REQUESTS.items()},
    **{key: _about_a_transaction(make) for key, make in TRANSACTION_REQUESTS.items()},
}
