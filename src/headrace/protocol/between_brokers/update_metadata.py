"""UpdateMetadata (key 6), v8-v9: the controller sends brokers the state of partitions and the live brokers.

This is Kafka's message from before KRaft, which Kafka 4 has removed. The additional content of LeaderAndIsr
and StopReplica is in tagged fields: a broker derives from a partition's state what its own replica has to do.
A deleted topic has partitions with the leader -2.

Since v9 the whole state of a large cluster is sent in parts: incremental requests that are numbered from 0. A
broker that has applied the last part knows all topics, and deletes the others. A broker that supports only v8
would take the parts for changes, and gets one full request. Apart from the parts, both versions have the same
bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import Final

from headrace.protocol.message import Buffer, Message, Struct, field

UPDATE_METADATA: Final = 6
TOPIC_IS_GONE: Final = -2
INCREMENTAL, FULL = 1, 2
NOT_A_PART: Final = -1
PARTS_SINCE: Final = 9
"""The first version whose receiver knows parts."""
_HEAD: Final = Layout(">i?biq")  # the fields of a request up to the broker epoch


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


class SharedTopicStates(list[UpdateMetadataTopicState]):
    """The topic states of requests that are sent to many brokers, and differ only in the broker epoch.

    `rest` is the encoded request after the broker epoch.
    """

    __slots__ = ("rest",)

    rest: bytes


class UpdateMetadataRequest(Message, key=UPDATE_METADATA, versions="8-9", flexible="8+"):
    controller_id: int = field("int32", "8+")
    is_kraft_controller: bool = field("bool", "8+", default=False)
    type: int = field("int8", "8+", default=0)
    controller_epoch: int = field("int32", "8+")
    broker_epoch: int = field("int64", "8+", default=-1)
    topic_states: Sequence[UpdateMetadataTopicState] = field("[]UpdateMetadataTopicState", "8+")
    live_brokers: Sequence[UpdateMetadataBroker] = field("[]UpdateMetadataBroker", "8+")
    part: int = field("int32", "8+", tag=0, default=NOT_A_PART)
    is_last_part: bool = field("bool", "8+", tag=1, default=False)

    def encode(self, version: int) -> list[Buffer]:
        """Encode the body; what is shared with requests to other brokers is not encoded again."""
        states = self.topic_states
        if not isinstance(states, SharedTopicStates):
            return super().encode(version)
        head = _HEAD.pack(
            self.controller_id, self.is_kraft_controller, self.type, self.controller_epoch, self.broker_epoch
        )
        return [head, states.rest]


def after_broker_epoch(body: Sequence[Buffer]) -> bytes:
    """Return an encoded request without the fields up to the broker epoch."""
    return b"".join(body)[_HEAD.size :]


class UpdateMetadataResponse(Message, key=UPDATE_METADATA, versions="8-9", flexible="8+"):
    error_code: int = field("int16", "8+", default=0)
