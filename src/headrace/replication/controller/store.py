"""The model as a new controller reads it from ZooKeeper; `transactions.py` writes it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from headrace.coordination import znodes
from headrace.coordination.session import Znode, ZooKeeperSession
from headrace.protocol.ids import TopicPartition
from headrace.replication.controller.model import Member, TopicModel, TopicRules
from headrace.replication.controller.pauses import Pauses
from headrace.replication.election import NO_LEADER, Partition, distrust

_READ_TOGETHER = 2000  # partitions, in several requests at a time


Rules = Callable[[Mapping[str, str]], TopicRules]
"""Returns the rules of a topic with these configs of its own, by the broker's defaults for the others."""


async def read_topics(
    session: ZooKeeperSession, members: Mapping[int, Member], rules: Rules
) -> dict[str, TopicModel]:
    """Read all topics, except those that are marked for deletion."""
    names = await session.children(znodes.TOPICS)
    found = await session.get_many([znodes.topic_path(name) for name in names])
    marked = await session.children(znodes.DELETED_TOPICS)
    marks = await session.get_many([znodes.deleted_topic_path(name) for name in marked])
    # A mark of a topic that is being deleted has the topic's id, or nothing.
    deleted = {name: mark.data for name, mark in zip(marked, marks, strict=True) if mark is not None}
    assignments = []
    versions = {}
    pauses = Pauses()
    for name, znode in zip(names, found, strict=True):
        if znode is not None:
            assignment = znodes.TopicAssignment.decode(name, znode.data)
            await pauses.next(1 + len(assignment.replicas))
            if deleted.get(name) not in {b"", znodes.encode_id(assignment.topic_id).encode()}:
                assignments.append(assignment)
                versions[name] = znode.version
    defaults = rules({})
    configs: dict[str, Mapping[str, str]] = {}
    topic_rules = {}
    read = await session.get_many([znodes.Config.path_of("topics", name) for name in versions])
    for name, znode in zip(versions, read, strict=True):
        await pauses.next()
        configs[name] = {} if znode is None else znodes.Config.decode("topics", name, znode.data).values
        topic_rules[name] = rules(configs[name]) if configs[name] else defaults
    partitions = await _read_partitions(session, assignments, members, topic_rules)
    topics = {}
    for each in assignments:
        await pauses.next()
        topics[each.topic] = TopicModel(
            topic_id=each.topic_id,
            version=versions[each.topic],
            partitions=partitions[each.topic],
            configs=configs[each.topic],
        )
    return topics


async def _read_partitions(
    session: ZooKeeperSession,
    assignments: Sequence[znodes.TopicAssignment],
    members: Mapping[int, Member],
    rules: Mapping[str, TopicRules],
) -> dict[str, dict[int, Partition]]:
    """Read the partitions of topics; those that a crash has left without a state get their first one."""
    every = ((assignment, index) for assignment in assignments for index in assignment.replicas)
    partitions: dict[str, dict[int, Partition]] = {assignment.topic: {} for assignment in assignments}
    pauses = Pauses()
    while some := list(islice(every, _READ_TOGETHER)):
        states = await session.get_many(
            [znodes.PartitionState.path_of(each.topic, index) for each, index in some]
        )
        for (assignment, index), found in zip(some, states, strict=True):
            await pauses.next()  # other requests are served in between
            topic = assignment.topic
            partitions[topic][index] = _partition(assignment, index, found, members, rules[topic])
    return partitions


def _partition(
    assignment: znodes.TopicAssignment,
    index: int,
    found: Znode | None,
    members: Mapping[int, Member],
    rules: TopicRules,
) -> Partition:
    replicas = tuple(assignment.replicas[index])
    if found is None:
        return first_state(replicas, rules, version=-1)
    state = znodes.PartitionState.decode(assignment.topic, index, found.data)
    isr = tuple(state.isr)
    partition = Partition(
        replicas=replicas,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=replicas if isr == replicas else isr,  # one object, because there are so many of them
        elr=tuple(state.elr),
        last_leader=state.last_leader,
        in_doubt=tuple(state.in_doubt),
        adding=tuple(assignment.adding.get(index, ())),
        removing=tuple(assignment.removing.get(index, ())),
        min_insync_replicas=rules.min_insync_replicas,
        unclean_allowed=rules.unclean_allowed,
        version=found.version,
    )
    key = TopicPartition(assignment.topic, index)
    return _after_restarts(key, partition, found.modified_zxid, members, state.broker_epochs)


def _after_restarts(
    key: TopicPartition,
    partition: Partition,
    written_zxid: int,
    members: Mapping[int, Member],
    epochs: Mapping[int, int],
) -> Partition:
    """Return the partition as it is after the restarts of brokers since its state was written.

    A broker has restarted if its epoch differs from the one in `epochs`, with which the state was written; a
    broker that is not in there, if it was registered later than `written_zxid`. A leader that has restarted
    does not lead until it is elected in a new leader epoch; for a broker that may have lost records, see
    `distrust`.
    """
    restarted = []
    for broker_id in dict.fromkeys((*partition.isr, *partition.elr, partition.leader)):
        member, known = members.get(broker_id), epochs.get(broker_id)
        if member is not None and (
            member.epoch != known if known is not None else member.epoch > written_zxid
        ):
            restarted.append(member)
    left = partition
    if partition.leader in {member.broker_id for member in restarted}:
        left = replace(left, leader=NO_LEADER, last_leader=partition.leader)
    for member in restarted:
        if member.is_in_doubt(key):
            left = distrust(left, member.broker_id, members)
    return left if left is partition else replace(left, is_written=left == partition)


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


def member_of(registration: znodes.BrokerRegistration, epoch: int) -> Member:
    return Member(
        broker_id=registration.broker_id,
        epoch=epoch,
        rack=registration.rack,
        node=registration.node,
        may_have_lost=registration.may_have_lost,
        lost=registration.lost,
    )
