"""The model as a new controller reads it from ZooKeeper; `transactions.py` writes it."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from headrace.controller.model import Member, TopicModel
from headrace.coordination.session import ZooKeeperSession
from headrace.coordination.znodes import (
    DELETED_TOPICS,
    TOPICS,
    BrokerRegistration,
    Config,
    PartitionState,
    TopicAssignment,
    deleted_topic_path,
    encode_id,
    topic_path,
)
from headrace.replication.election import NO_LEADER, Partition, distrust

_READS = 64  # topics at a time


class TopicRules(NamedTuple):
    """The configs of a topic that decide which replicas may lead."""

    min_insync_replicas: int
    unclean_allowed: bool


Rules = Callable[[Mapping[str, str]], TopicRules]
"""Returns the rules of a topic with these configs of its own, by the broker's defaults for the others."""


async def read_topics(
    session: ZooKeeperSession, members: Mapping[int, Member], rules: Rules
) -> dict[str, TopicModel]:
    """Read all topics, except those that are marked for deletion."""
    names = await session.children(TOPICS)
    marked = await session.children(DELETED_TOPICS)
    limit = asyncio.Semaphore(_READS)

    async def read(name: str) -> TopicModel | None:
        async with limit:
            topic = await read_topic(session, name, members, rules)
            if (
                topic is not None
                and name in marked
                and await _is_marked_deleted(session, name, topic.topic_id)
            ):
                return None
            return topic

    topics = await asyncio.gather(*(read(name) for name in names))
    return {name: topic for name, topic in zip(names, topics, strict=True) if topic is not None}


async def _is_marked_deleted(session: ZooKeeperSession, name: str, topic_id: bytes) -> bool:
    mark = await session.get(deleted_topic_path(name))
    return mark is not None and mark.data in {b"", encode_id(topic_id).encode()}


async def read_topic(
    session: ZooKeeperSession, name: str, members: Mapping[int, Member], rules: Rules
) -> TopicModel | None:
    """Read one topic; partitions that a crash has left without a state get their first one."""
    found = await session.get(topic_path(name))
    if found is None:
        return None
    assignment = TopicAssignment.decode(name, found.data)
    config = await session.get(Config.path_of("topics", name))
    configs = {} if config is None else Config.decode("topics", name, config.data).values
    topic_rules = rules(configs)
    partitions = await asyncio.gather(
        *(_read_partition(session, assignment, index, members, topic_rules) for index in assignment.replicas)
    )
    return TopicModel(
        topic_id=assignment.topic_id,
        version=found.version,
        partitions=dict(zip(assignment.replicas, partitions, strict=True)),
        configs=configs,
    )


async def _read_partition(
    session: ZooKeeperSession,
    assignment: TopicAssignment,
    index: int,
    members: Mapping[int, Member],
    rules: TopicRules,
) -> Partition:
    found = await session.get(PartitionState.path_of(assignment.topic, index))
    replicas = tuple(assignment.replicas[index])
    if found is None:
        return first_state(replicas, rules, version=-1)
    state = PartitionState.decode(assignment.topic, index, found.data)
    partition = Partition(
        replicas=replicas,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=tuple(state.isr),
        elr=tuple(state.elr),
        last_leader=state.last_leader,
        adding=tuple(assignment.adding.get(index, ())),
        removing=tuple(assignment.removing.get(index, ())),
        min_insync_replicas=rules.min_insync_replicas,
        unclean_allowed=rules.unclean_allowed,
        version=found.version,
    )
    return _after_restarts(partition, found.modified_zxid, members, state.broker_epochs)


def _after_restarts(
    partition: Partition,
    written_zxid: int,
    members: Mapping[int, Member],
    epochs: Mapping[int, int],
) -> Partition:
    """Return the partition as it is after the restarts of brokers since its state was written.

    A broker has restarted if its epoch differs from the one in `epochs`, with which the state was written; a
    broker that is not in there, if it was registered later than `written_zxid`. A leader that has restarted
    does not lead until it is elected in a new leader epoch; a broker that may have lost records leaves the
    ISR.
    """
    left = partition
    for member in members.values():
        known = epochs.get(member.broker_id)
        if member.epoch != known if known is not None else member.epoch > written_zxid:
            if not member.trusted:
                left = distrust(left, member.broker_id)
            if left.leader == member.broker_id:
                left = replace(left, leader=NO_LEADER, last_leader=member.broker_id)
    return replace(left, is_written=left == partition)


def first_state(replicas: tuple[int, ...], rules: TopicRules, *, version: int = 0) -> Partition:
    """Return the state of a new partition: its first replica leads, and all are in the ISR."""
    return Partition(
        replicas=replicas,
        leader=replicas[0],
        leader_epoch=0,
        isr=replicas,
        min_insync_replicas=rules.min_insync_replicas,
        unclean_allowed=rules.unclean_allowed,
        version=version,
        is_written=version >= 0,
    )


def member_of(registration: BrokerRegistration, epoch: int) -> Member:
    return Member(
        broker_id=registration.broker_id,
        epoch=epoch,
        rack=registration.rack,
        trusted=not registration.may_have_lost,
    )
