"""UpdateMetadata (key 6), v8: the controller sends brokers the state of partitions and the live brokers.

This is Kafka's message from before KRaft, which Kafka 4 has removed. The additional content of LeaderAndIsr
and StopReplica is in tagged fields: a broker derives from a partition's state what its own replica has to do.
A deleted topic has partitions with the leader -2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.protocol.message import Message, Struct, field

UPDATE_METADATA: Final = 6
TOPIC_IS_GONE: Final = -2
INCREMENTAL, FULL = 1, 2


class UpdateMetadataPartitionState(Struct):
    partition_index: int = field("int32", "8+")
    controller_epoch: int = field("int32", "8+")
    leader: int = field("int32", "8+")
    leader_epoch: int = field("int32", "8+")
    isr: Sequence[int] = field("[]int32", "8+")
    zk_version: int = field("int32", "8+")
    replicas: Sequence[int] = field("[]int32", "8+")
    offline_replicas: Sequence[int] = field("[]int32", "8+")
    eligible_leader_replicas: Sequence[int] = field("[]int32", "8+", tag=0, default=())
    adding_replicas: Sequence[int] = field("[]int32", "8+", tag=1, default=())
    removing_replicas: Sequence[int] = field("[]int32", "8+", tag=2, default=())
    last_known_leader: int = field("int32", "8+", tag=3, default=-1)


class UpdateMetadataTopicConfig(Struct):
    name: str = field("string", "8+")
    value: str = field("string", "8+")


class UpdateMetadataTopicState(Struct):
    topic_name: str = field("string", "8+")
    topic_id: bytes = field("uuid", "8+")
    partition_states: Sequence[UpdateMetadataPartitionState] = field("[]UpdateMetadataPartitionState", "8+")
    configs: Sequence[UpdateMetadataTopicConfig] = field(
        "[]UpdateMetadataTopicConfig", "8+", tag=0, default=()
    )


class UpdateMetadataEndpoint(Struct):
    port: int = field("int32", "8+")
    host: str = field("string", "8+")
    listener: str = field("string", "8+")
    security_protocol: int = field("int16", "8+")


class UpdateMetadataBroker(Struct):
    id: int = field("int32", "8+")
    endpoints: Sequence[UpdateMetadataEndpoint] = field("[]UpdateMetadataEndpoint", "8+")
    rack: str | None = field("string", "8+", nullable="8+")
    broker_epoch: int = field("int64", "8+", tag=0, default=-1)
    node: str | None = field("string", "8+", nullable="8+", tag=1, default=None)


class UpdateMetadataRequest(Message, key=UPDATE_METADATA, versions="8", flexible="8+"):
    controller_id: int = field("int32", "8+")
    is_kraft_controller: bool = field("bool", "8+", default=False)
    type: int = field("int8", "8+", default=0)
    controller_epoch: int = field("int32", "8+")
    broker_epoch: int = field("int64", "8+", default=-1)
    topic_states: Sequence[UpdateMetadataTopicState] = field("[]UpdateMetadataTopicState", "8+")
    live_brokers: Sequence[UpdateMetadataBroker] = field("[]UpdateMetadataBroker", "8+")


class UpdateMetadataResponse(Message, key=UPDATE_METADATA, versions="8", flexible="8+"):
    error_code: int = field("int16", "8+", default=0)
