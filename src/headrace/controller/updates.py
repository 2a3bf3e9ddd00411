"""The UpdateMetadata requests of the controller: some partitions, or the whole state of the cluster."""

from collections.abc import Collection, Mapping

from headrace.controller.model import ClusterModel
from headrace.coordination.znodes import BrokerRegistration
from headrace.protocol.fields import ZERO_UUID
from headrace.protocol.ids import TopicPartition
from headrace.protocol.update_metadata import (
    FULL,
    INCREMENTAL,
    TOPIC_IS_GONE,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicConfig,
    UpdateMetadataTopicState,
)


def compose(
    model: ClusterModel,
    registrations: Mapping[int, BrokerRegistration],
    *,
    controller_id: int,
    controller_epoch: int,
    to_broker: int,
    keys: Collection[TopicPartition] | None,
) -> UpdateMetadataRequest:
    """Return the request for `to_broker` with the state of `keys`; None: of all partitions."""
    wanted: Mapping[str, Collection[int]]
    if keys is None:
        wanted = {name: topic.partitions.keys() for name, topic in model.topics.items()}
    else:
        wanted = {}
        for key in sorted(keys):
            wanted.setdefault(key.topic, []).append(key.partition)  # type: ignore[attr-defined]
    member = model.members.get(to_broker)
    live = model.live
    return UpdateMetadataRequest(
        controller_id=controller_id,
        type=FULL if keys is None else INCREMENTAL,
        controller_epoch=controller_epoch,
        broker_epoch=-1 if member is None else member.epoch,
        topic_states=[
            _topic(model, live, name, indexes, controller_epoch) for name, indexes in wanted.items()
        ],
        live_brokers=[
            _broker(registrations[broker_id], model.members[broker_id].epoch)
            for broker_id in sorted(live)
            if broker_id in registrations
        ],
    )


def _topic(
    model: ClusterModel, live: Collection[int], name: str, indexes: Collection[int], controller_epoch: int
) -> UpdateMetadataTopicState:
    topic = model.topics.get(name)
    if topic is None:
        states = [_gone(index, controller_epoch) for index in indexes]
        topic_id = model.removed.get(name, ZERO_UUID)
        return UpdateMetadataTopicState(topic_name=name, topic_id=topic_id, partition_states=states)
    return UpdateMetadataTopicState(
        topic_name=name,
        topic_id=topic.topic_id,
        partition_states=[
            UpdateMetadataPartitionState(
                partition_index=index,
                controller_epoch=controller_epoch,
                leader=partition.leader,
                leader_epoch=partition.leader_epoch,
                isr=partition.isr,
                zk_version=partition.version,
                replicas=partition.replicas,
                offline_replicas=[each for each in partition.replicas if each not in live],
                eligible_leader_replicas=partition.elr,
                adding_replicas=partition.adding,
                removing_replicas=partition.removing,
                last_known_leader=partition.last_leader,
            )
            for index in indexes
            if (partition := topic.partitions.get(index)) is not None
        ],
        configs=[UpdateMetadataTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )


def _gone(index: int, controller_epoch: int) -> UpdateMetadataPartitionState:
    return UpdateMetadataPartitionState(
        partition_index=index,
        controller_epoch=controller_epoch,
        leader=TOPIC_IS_GONE,
        leader_epoch=-1,
        isr=(),
        zk_version=-1,
        replicas=(),
        offline_replicas=(),
    )


def _broker(registration: BrokerRegistration, epoch: int) -> UpdateMetadataBroker:
    endpoints = [
        UpdateMetadataEndpoint(
            port=each.port, host=each.host, listener=each.name, security_protocol=each.security_protocol
        )
        for each in registration.endpoints
    ]
    return UpdateMetadataBroker(
        id=registration.broker_id,
        endpoints=endpoints,
        rack=registration.rack,
        broker_epoch=epoch,
        node=registration.node,
    )
