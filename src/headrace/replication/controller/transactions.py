"""Every transaction that changes the state of the cluster in ZooKeeper.

Each write of the controller also checks the controller epoch: a controller that was replaced writes nothing.
Configs are written by any broker, at the version that it has read.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from headrace.coordination import znodes
from headrace.coordination.session import (
    Check,
    Conflict,
    Create,
    Delete,
    Operation,
    Set,
    Znode,
    ZooKeeperSession,
)
from headrace.protocol.ids import TopicPartition
from headrace.protocol.kafka_errors import NotController, TopicAlreadyExists
from headrace.replication.controller.model import Changes, ClusterModel, Member
from headrace.replication.controller.partition_index import placement
from headrace.replication.controller.pauses import Pauses
from headrace.replication.election import Partition

MAX_TRANSACTION_BYTES = 512 * 1024  # ZooKeeper's limit is a megabyte
MAX_OPERATIONS = 50  # of one transaction: the embedded coordinator handles it in one step, of about 3 ms
CHANGE_RETENTION_MS = 15 * 60 * 1000  # Kafka's
_UNREGISTERED = -1  # instead of a broker epoch: any later registration of the broker differs from it


class ElectedEpoch(NamedTuple):
    """The controller epoch of an elected controller, and the version of the znode that holds it."""

    epoch: int
    version: int

    @property
    def check(self) -> Check:
        """The operation that makes a transaction fail once a later controller is elected."""
        return Check(znodes.ControllerEpoch.path, self.version)


async def elect_controller(session: ZooKeeperSession, controller: znodes.Controller) -> ElectedEpoch | None:
    """Elect `controller` in a new controller epoch, in one transaction; None if there is a controller."""
    found = await session.get(znodes.ControllerEpoch.path)
    if found is None:
        try:
            await session.create(znodes.ControllerEpoch.path, znodes.ControllerEpoch(epoch=0).encode())
        except Conflict:
            return None  # another broker is running at the same time
        found = await session.get(znodes.ControllerEpoch.path)
        assert found is not None, "the controller epoch was just created"
    epoch = znodes.ControllerEpoch.decode(found.data).epoch + 1
    try:
        await session.multi(
            [
                Set(znodes.ControllerEpoch.path, znodes.ControllerEpoch(epoch=epoch).encode(), found.version),
                Create(znodes.Controller.path, controller.encode(), ephemeral=True),
            ]
        )
    except Conflict:
        # This session may be the elected one: the answer to an earlier attempt may have been lost.
        holder = await session.get(znodes.Controller.path)
        if holder is None or holder.ephemeral_owner != session.session_id:
            return None
        own = await session.get(znodes.ControllerEpoch.path)
        return (
            None if own is None else ElectedEpoch(znodes.ControllerEpoch.decode(own.data).epoch, own.version)
        )
    return ElectedEpoch(epoch, found.version + 1)


async def create_topic(
    session: ZooKeeperSession,
    elected: ElectedEpoch,
    topic: znodes.TopicAssignment,
    config: znodes.Config,
    states: Iterable[znodes.PartitionState],
) -> None:
    """Write a new topic; raise TopicAlreadyExists, or NotController if another broker is elected.

    A config that an earlier topic of this name has left is replaced in the same transaction.
    """
    has_config = await session.exists(config.path)
    operations = [
        Set(config.path, config.encode()) if has_config else Create(config.path, config.encode()),
        Create(topic.path, topic.encode()),
        Create(f"{topic.path}/partitions", b""),
        *await _create_states(states),
    ]
    try:
        await _commit(session, elected, operations)
    except Conflict as error:
        if error.path == znodes.ControllerEpoch.path:
            raise NotController("another broker is the controller (NOT_CONTROLLER)") from error
        raise TopicAlreadyExists(f"topic {topic.topic!r} exists already (TOPIC_ALREADY_EXISTS)") from error


async def add_partitions(
    session: ZooKeeperSession,
    elected: ElectedEpoch,
    topic: znodes.TopicAssignment,
    version: int,
    states: Iterable[znodes.PartitionState],
) -> None:
    """Write an assignment that has more partitions than the one at `version`, and their states."""
    operations = [Set(topic.path, topic.encode(), version), *await _create_states(states)]
    await _commit(session, elected, operations)


async def mark_deleted(session: ZooKeeperSession, name: str, topic_id: bytes) -> None:
    """Mark a topic for deletion: from then on a controller resumes the deletion after a crash."""
    mark, data = znodes.deleted_topic_path(name), znodes.encode_id(topic_id).encode()
    try:
        await session.create(mark, data)
    except Conflict:  # there is a mark of an earlier topic of this name
        await session.set(mark, data)


async def delete_topic(session: ZooKeeperSession, elected: ElectedEpoch, name: str) -> None:
    """Delete the config of a topic, then its znodes, children before their parents."""
    await session.delete_tree(znodes.Config.path_of("topics", name))
    root = znodes.topic_path(name)
    partitions = [f"{root}/partitions/{each}" for each in await session.children(f"{root}/partitions")]
    paths = [path for partition in partitions for path in (f"{partition}/state", partition)]
    try:
        await _delete(session, elected, paths)
    except Conflict as error:
        if error.path == znodes.ControllerEpoch.path:
            raise
    # What is left: all of it if a partition has no state, or znodes that somebody else has created.
    await _delete(session, elected, [path async for path in _tree(session, root)])


async def _delete(session: ZooKeeperSession, elected: ElectedEpoch, paths: Sequence[str]) -> None:
    """Delete znodes, children before their parents, in transactions that are sent together."""
    parts = [paths[first : first + MAX_OPERATIONS] for first in range(0, len(paths), MAX_OPERATIONS)]
    await _all_of(session.multi([elected.check, *map(Delete, part)]) for part in parts)


async def _tree(session: ZooKeeperSession, path: str) -> AsyncIterator[str]:
    """Iterate over a znode and all below it, children before their parents."""
    for child in await session.children(path):
        async for below in _tree(session, f"{path}/{child}"):
            yield below
    if await session.exists(path):
        yield path


async def write_changes(
    session: ZooKeeperSession, elected: ElectedEpoch, model: ClusterModel, changes: Changes
) -> Changes:
    """Write `changes` and return them with their new versions.

    Conflict if a later controller has written.
    """
    operations: list[Operation] = []
    by_topic: dict[str, Changes] = {}
    for key, partition in changes.items():
        by_topic.setdefault(key.topic, {})[key] = partition
    pauses = Pauses()
    for name, of_topic in by_topic.items():
        for key, partition in of_topic.items():
            await pauses.next()
            state = state_of(key, partition, elected.epoch, model.members)
            if partition.version == -1:  # its state does not exist yet
                operations += _created(state)
            else:
                operations.append(Set(state.path, state.encode(), partition.version))
        assignment = _changed_assignment(model, name, of_topic)
        if assignment is not None:
            version = model.topics[name].version
            operations.append(Set(assignment.path, assignment.encode(), version))
            model.topics[name].version = version + 1
    await _commit(session, elected, operations)
    written: Changes = {}
    for key, partition in changes.items():
        await pauses.next()
        written[key] = replace(partition, version=partition.version + 1, is_written=True)
    return written


def state_of(
    key: TopicPartition, partition: Partition, controller_epoch: int, members: Mapping[int, Member]
) -> znodes.PartitionState:
    """Return the content of the partition's state znode, with the epochs of the brokers that may lead."""
    return znodes.PartitionState(
        topic=key.topic,
        partition=key.partition,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        controller_epoch=controller_epoch,
        elr=partition.elr,
        last_leader=partition.last_leader,
        in_doubt=partition.in_doubt,
        broker_epochs={
            each: members[each].epoch if each in members else _UNREGISTERED
            for each in (*partition.isr, *partition.elr)
        },
        version=partition.version,
    )


async def _create_states(states: Iterable[znodes.PartitionState]) -> list[Operation]:
    operations: list[Operation] = []
    pauses = Pauses()
    for state in states:
        await pauses.next()
        operations += _created(state)
    return operations


def _created(state: znodes.PartitionState) -> tuple[Create, Create]:
    return Create(state.path.removesuffix("/state"), b""), Create(state.path, state.encode())


def _changed_assignment(model: ClusterModel, name: str, changes: Changes) -> znodes.TopicAssignment | None:
    """Return the topic's assignment with `changes`; None if it stays the same."""
    topic = model.topics[name]
    if all(placement(model.find(key)) == placement(partition) for key, partition in changes.items()):
        return None
    after = {index: changes.get(TopicPartition(name, index), old) for index, old in topic.partitions.items()}
    return znodes.TopicAssignment(
        topic=name,
        topic_id=topic.topic_id,
        replicas={index: each.replicas for index, each in after.items()},
        adding={index: each.adding for index, each in after.items() if each.adding},
        removing={index: each.removing for index, each in after.items() if each.removing},
    )


async def _commit(session: ZooKeeperSession, elected: ElectedEpoch, operations: Iterable[Operation]) -> None:
    """Commit `operations` in transactions of limited size; raise the first error of any of them.

    For a new topic the first transaction contains its assignment; a controller that is elected before the
    last one creates the states that are missing. The others are sent together after the first one.
    """
    first, *others = [transaction async for transaction in _split(elected, operations)]
    await session.multi(first)
    await _all_of(session.multi(other) for other in others)


async def _all_of(calls: Iterable[Awaitable[None]]) -> None:
    """Return when all calls have ended; raise the first error of any of them."""
    for result in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


async def _split(elected: ElectedEpoch, operations: Iterable[Operation]) -> AsyncIterator[list[Operation]]:
    """Iterate over the transactions: at least one, each with a check of the controller epoch."""
    pauses = Pauses()
    transaction: list[Operation] = [elected.check]
    room = MAX_TRANSACTION_BYTES
    for operation in operations:
        data = operation.data if isinstance(operation, Create | Set) else b""
        size = len(operation.path) + len(data) + 100  # the rest of an operation takes less than 100 bytes
        # A partition's directory and its state are created together or not at all.
        follows_directory = isinstance(operation, Create) and operation.path.endswith("/state")
        is_full = size > room or len(transaction) > MAX_OPERATIONS
        if is_full and not follows_directory:
            yield transaction
            await pauses.next(len(transaction))
            transaction, room = [elected.check], MAX_TRANSACTION_BYTES
        transaction.append(operation)
        room -= size
    yield transaction


async def write_config(session: ZooKeeperSession, config: znodes.Config, found: Znode | None) -> None:
    """Replace the config that was read as `found`, and notify the other brokers.

    Conflict if another broker has changed it since. Resources that are listed by their znodes have none
    without a config, except a user with znodes for single client ids below it.
    """
    is_unset = config.kind not in {"topics", "brokers"} and not config.values
    if found is not None and is_unset and not found.children:
        await session.delete(config.path, found.version)
    elif found is not None:
        await session.set(config.path, config.encode(), found.version)
    elif not is_unset:
        if znodes.user_of(config.kind) is not None:
            await session.ensure(config.parent)
        await session.create(config.path, config.encode())
    change = znodes.ConfigChange(entity=config.path.removeprefix("/config/"))
    await session.create(znodes.ConfigChange.prefix, change.encode(), sequence=True)


async def remove_old_changes(session: ZooKeeperSession, directory: str, now_ms: int) -> None:
    """Remove the change notifications that are older than 15 minutes, except the newest notification.

    A broker that was away for longer sees by the sequence number of the oldest one that it has missed some.
    """
    names = sorted(await session.children(directory))
    for name in names[:-1]:
        path = f"{directory}/{name}"
        found = await session.get(path)
        if found is not None and now_ms - found.created_ms <= CHANGE_RETENTION_MS:
            return
        with contextlib.suppress(Conflict):  # another broker has removed it
            await session.delete(path)
