"""The controller's model in ZooKeeper: read whole by a new controller, written a change at a time.

Every write is a transaction that also checks the controller's epoch: one that is replaced writes nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from headrace.controller.model import Changes, ClusterModel, Member, TopicModel
from headrace.coordination.session import Check, Conflict, Create, Delete, Operation, Set, ZooKeeperSession
from headrace.coordination.znodes import (
    DELETED_TOPICS,
    TOPICS,
    BrokerRegistration,
    Config,
    Controller,
    ControllerEpoch,
    PartitionState,
    TopicAssignment,
    deleted_topic_path,
    encode_id,
    topic_path,
)
from headrace.protocol.ids import TopicPartition
from headrace.replication.election import NO_LEADER, Partition, distrust

MAX_TRANSACTION_BYTES = 512 * 1024  # ZooKeeper takes a megabyte
_READS = 64  # topics at a time
_NOT_HERE = -1  # in place of a broker's epoch: whenever it comes, it has not been heard of before
_DELETES = 1000  # znodes in one transaction


class TopicRules(NamedTuple):
    """What a topic's settings say about its leaders."""

    min_insync_replicas: int
    unclean_allowed: bool


Rules = Callable[[Mapping[str, str]], TopicRules]
"""What follows from what a topic sets itself."""


class ElectedEpoch(NamedTuple):
    """The controller epoch of an elected controller, and the version of the znode that holds it."""

    epoch: int
    version: int

    @property
    def check(self) -> Check:
        """The operation that makes a transaction fail once a later controller is elected."""
        return Check(ControllerEpoch.path, self.version)


async def elect_controller(session: ZooKeeperSession, controller: Controller) -> ElectedEpoch | None:
    """Elect `controller` in a new controller epoch, in one transaction; None if there is a controller."""
    found = await session.get(ControllerEpoch.path)
    if found is None:
        try:
            await session.create(ControllerEpoch.path, ControllerEpoch(epoch=0).encode())
        except Conflict:
            return None  # another broker is running at the same time
        found = await session.get(ControllerEpoch.path)
        assert found is not None, "the controller epoch was just created"
    epoch = ControllerEpoch.decode(found.data).epoch + 1
    try:
        await session.multi(
            [
                Set(ControllerEpoch.path, ControllerEpoch(epoch=epoch).encode(), found.version),
                Create(Controller.path, controller.encode(), ephemeral=True),
            ]
        )
    except Conflict:
        return await _own_epoch(session)
    return ElectedEpoch(epoch, found.version + 1)


async def _own_epoch(session: ZooKeeperSession) -> ElectedEpoch | None:
    """Return the current epoch if this session was elected in it: the answer to an attempt may be lost."""
    holder = await session.get(Controller.path)
    if holder is None or holder.ephemeral_owner != session.session_id:
        return None
    found = await session.get(ControllerEpoch.path)
    return None if found is None else ElectedEpoch(ControllerEpoch.decode(found.data).epoch, found.version)


# -- reading -----------------------------------------------------------------------------------


async def read_topics(
    session: ZooKeeperSession, members: Mapping[int, Member], rules: Rules
) -> dict[str, TopicModel]:
    """All topics, as a new controller finds them, without those whose deletion has begun."""
    names = await session.children(TOPICS)
    marked = await session.children(DELETED_TOPICS)
    limit = asyncio.Semaphore(_READS)

    async def read(name: str) -> TopicModel | None:
        async with limit:
            topic = await read_topic(session, name, members, rules)
            if topic is not None and name in marked and await _is_doomed(session, name, topic.topic_id):
                return None
            return topic

    topics = await asyncio.gather(*(read(name) for name in names))
    return {name: topic for name, topic in zip(names, topics, strict=True) if topic is not None}


async def _is_doomed(session: ZooKeeperSession, name: str, topic_id: bytes) -> bool:
    mark = await session.get(deleted_topic_path(name))
    return mark is not None and mark.data in {b"", encode_id(topic_id).encode()}


async def read_topic(
    session: ZooKeeperSession, name: str, members: Mapping[int, Member], rules: Rules
) -> TopicModel | None:
    """One topic; partitions that a crash has left without a state get their first one."""
    found = await session.get(topic_path(name))
    if found is None:
        return None
    assignment = TopicAssignment.decode(name, found.data)
    config = await session.get(Config.path_of("topics", name))
    configs = {} if config is None else Config.decode("topics", name, config.data).values
    wants = rules(configs)
    partitions = await asyncio.gather(
        *(_read_partition(session, assignment, index, members, wants) for index in assignment.replicas)
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
    wants: TopicRules,
) -> Partition:
    found = await session.get(PartitionState.path_of(assignment.topic, index))
    replicas = tuple(assignment.replicas[index])
    if found is None:
        return first_state(replicas, wants, version=-1)
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
        min_insync_replicas=wants.min_insync_replicas,
        unclean_allowed=wants.unclean_allowed,
        version=found.version,
    )
    return _as_left_by(partition, found.modified_zxid, members, state.broker_epochs)


def _as_left_by(
    partition: Partition,
    written_zxid: int,
    members: Mapping[int, Member],
    epochs: Mapping[int, int],
) -> Partition:
    """The partition without what brokers have lost by restarting since it was written.

    It was written with the `epochs` of its brokers, as its controller knew them; of others, a registration
    with a later zxid tells. A leader that has restarted leads no more, until it is elected in an epoch of
    its own; one that may have lost records is not counted on.
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


def first_state(replicas: tuple[int, ...], wants: TopicRules, *, version: int = 0) -> Partition:
    """A new partition is led by its first replica, and all are in sync: all are empty."""
    return Partition(
        replicas=replicas,
        leader=replicas[0],
        leader_epoch=0,
        isr=replicas,
        min_insync_replicas=wants.min_insync_replicas,
        unclean_allowed=wants.unclean_allowed,
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


# -- writing -----------------------------------------------------------------------------------


async def write_changes(
    session: ZooKeeperSession, elected: ElectedEpoch, model: ClusterModel, changes: Changes
) -> Changes:
    """Write `changes` down, in as few transactions as there is room for; they come back with their versions.

    Conflict: somebody else has written, so that this is not the controller any more.
    """
    written: Changes = {}
    part: list[Operation] = [elected.check]
    room = MAX_TRANSACTION_BYTES
    for name in dict.fromkeys(key.topic for key in changes):
        of_topic = {key: partition for key, partition in changes.items() if key.topic == name}
        operations = [
            operation
            for key, partition in of_topic.items()
            for operation in _state_operations(key, partition, elected.epoch, model.members)
        ]
        assignment = _assignment(model, name, of_topic)
        if assignment is not None:
            version = model.topics[name].version
            operations.append(Set(assignment.path, assignment.encode(), version))
            model.topics[name].version = version + 1
        for operation in operations:
            size = size_of(operation)
            if size > room and not belongs_to_the_one_before(operation):
                await session.multi(part)
                part, room = [elected.check], MAX_TRANSACTION_BYTES
            part.append(operation)
            room -= size
        written.update(
            {
                key: replace(value, version=value.version + 1, is_written=True)
                for key, value in of_topic.items()
            }
        )
    await session.multi(part)
    return written


def _state_operations(
    key: TopicPartition, partition: Partition, epoch: int, members: Mapping[int, Member]
) -> list[Operation]:
    state = state_of(key, partition, epoch, members)
    if partition.version == -1:  # a partition that has none yet
        return [Create(state.path.removesuffix("/state"), b""), Create(state.path, state.encode())]
    return [Set(state.path, state.encode(), partition.version)]


def state_of(
    key: TopicPartition, partition: Partition, epoch: int, members: Mapping[int, Member]
) -> PartitionState:
    return PartitionState(
        topic=key.topic,
        partition=key.partition,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        controller_epoch=epoch,
        elr=partition.elr,
        last_leader=partition.last_leader,
        broker_epochs={
            each: members[each].epoch if each in members else _NOT_HERE
            for each in (*partition.isr, *partition.elr)
        },
        version=partition.version,
    )


def _assignment(model: ClusterModel, name: str, changes: Changes) -> TopicAssignment | None:
    """The topic's assignment with `changes`; None if they do not touch it."""
    topic = model.topics[name]
    after = {index: changes.get(TopicPartition(name, index), old) for index, old in topic.partitions.items()}
    before = topic.partitions
    if all(
        (after[index].replicas, after[index].adding, after[index].removing)
        == (before[index].replicas, before[index].adding, before[index].removing)
        for index in before
    ):
        return None
    return TopicAssignment(
        topic=name,
        topic_id=topic.topic_id,
        replicas={index: each.replicas for index, each in after.items()},
        adding={index: each.adding for index, each in after.items() if each.adding},
        removing={index: each.removing for index, each in after.items() if each.removing},
    )


def belongs_to_the_one_before(operation: Operation) -> bool:
    """Whether it makes the state of a partition that the one before makes: they come together or not."""
    return isinstance(operation, Create) and operation.path.endswith("/state")


def size_of(operation: Operation) -> int:
    """Bytes that an operation takes in a transaction, and some to spare."""
    data = operation.data if isinstance(operation, Create | Set) else b""
    return len(operation.path) + len(data) + 100


async def delete_topic(session: ZooKeeperSession, elected: ElectedEpoch, name: str) -> None:
    """Remove a topic's znodes, the topic itself last, as long as this is the controller."""
    paths = [path async for path in _tree(session, topic_path(name))]
    while paths:
        part, paths = paths[:_DELETES], paths[_DELETES:]
        await session.multi([elected.check, *(Delete(path) for path in part)])


async def _tree(session: ZooKeeperSession, path: str) -> AsyncIterator[str]:
    """A znode and all below it, children before their parents."""
    for child in await session.children(path):
        async for below in _tree(session, f"{path}/{child}"):
            yield below
    if await session.exists(path):
        yield path
