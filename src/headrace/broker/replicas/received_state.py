"""The state of the cluster as an UpdateMetadata has it, compared with the image and made part of it. Pure."""

from collections.abc import Mapping, Sequence

from headrace.broker.image import TopicImage
from headrace.coordination.znodes import BrokerRegistration, PartitionState
from headrace.protocol.between_brokers.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataTopicState,
)
from headrace.security.listeners import Endpoint, SecurityProtocol

_NO_EPOCHS: Mapping[int, int] = {}


def is_stale(state: UpdateMetadataPartitionState, topic: TopicImage | None) -> bool:
    """Return whether a later state of the partition is known.

    An update may arrive late, on a connection that the controller has given up. A replica that has moved away
    since must not be created again.
    """
    known = None if topic is None else topic.states.get(state.partition_index)
    return known is not None and (state.leader_epoch, state.zk_version) < (known.leader_epoch, known.version)


def is_known(state: UpdateMetadataPartitionState, topic: TopicImage) -> bool:
    """Return whether this very state of the partition is known."""
    known = topic.states.get(state.partition_index)
    return (
        known is not None
        and (state.leader_epoch, state.zk_version) == (known.leader_epoch, known.version)
        and (state.leader, tuple(state.isr)) == (known.leader, known.isr)
        and tuple(state.replicas) == tuple(topic.replicas[state.partition_index])
    )


def image_to_change(old: TopicImage | None, update: UpdateMetadataTopicState, *, whole: bool) -> TopicImage:
    """Return the image for the states of `update`: `old` itself, unless its partitions change in number."""
    indexes = {state.partition_index for state in update.partition_states}
    if old is not None and indexes <= old.states.keys() and not (whole and len(indexes) < len(old.states)):
        return old
    kept = {} if old is None or whole else old.states
    every = sorted(indexes | kept.keys())
    replicas: dict[int, Sequence[int]] = dict.fromkeys(every, ())
    states = {}
    for index in every:
        if index in kept and old is not None:
            replicas[index], states[index] = old.replicas[index], kept[index]
    return TopicImage(update.topic_name, update.topic_id, replicas, states)


def state_of(topic: str, state: UpdateMetadataPartitionState, replicas: tuple[int, ...]) -> PartitionState:
    """Return the state of a partition; a broker has one of every partition of the cluster."""
    isr = tuple(state.isr)
    return PartitionState(
        topic=topic,
        partition=state.partition_index,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=replicas if isr == replicas else isr,
        controller_epoch=state.controller_epoch,
        elr=tuple(state.eligible_leader_replicas),
        last_leader=state.last_known_leader,
        broker_epochs=_NO_EPOCHS,
        version=state.zk_version,
    )


def registration_of(broker: UpdateMetadataBroker) -> BrokerRegistration:
    return BrokerRegistration(
        broker_id=broker.id,
        endpoints=[
            Endpoint(
                endpoint.listener, endpoint.host, endpoint.port, SecurityProtocol(endpoint.security_protocol)
            )
            for endpoint in broker.endpoints
        ],
        timestamp_ms=-1,
        rack=broker.rack,
        node=broker.node,
    )
