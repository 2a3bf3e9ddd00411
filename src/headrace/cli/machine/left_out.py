"""Brokers that a cluster on one machine has had, and would not have any more."""

from collections import defaultdict

from headrace.cli.machine.directory import DataDirectory
from headrace.cli.process import Refused
from headrace.coordination.session import ZooKeeperSession
from headrace.coordination.znodes import TOPICS, TopicAssignment, topic_path

_TIMEOUT_MS = 18_000
_NAMED = 3  # partitions in a sentence


async def refuse_loss(directory: DataDirectory, brokers: int, zookeeper: str) -> None:
    """Refused if one of them has replicas: nobody would see those again."""
    left_out = [each for each in directory.brokers() if each > brokers]
    if not left_out:
        return
    replicas = await _replicas(zookeeper)
    needed = [each for each in left_out if each in replicas]
    if needed:
        broker_id, on_it = needed[0], sorted(replicas[needed[0]])
        named = ", ".join(on_it[:_NAMED]) + (", ..." if len(on_it) > _NAMED else "")
        raise Refused(
            f"{directory.path} has been run with broker {broker_id}, where {len(on_it)} replicas are "
            f"({named}): start it with --brokers {needed[-1]}, and have "
            f"`headrace cluster drain {broker_id} --wait` move them, before you leave it out"
        )


async def _replicas(zookeeper: str) -> dict[int, list[str]]:
    """The partitions on each broker."""
    session = await ZooKeeperSession.connect(
        zookeeper, session_timeout_ms=_TIMEOUT_MS, connect_timeout_ms=_TIMEOUT_MS
    )
    found: dict[int, list[str]] = defaultdict(list)
    try:
        for topic in await session.children(TOPICS):
            znode = await session.get(topic_path(topic))
            if znode is not None:
                for index, replicas in TopicAssignment.decode(topic, znode.data).replicas.items():
                    for broker_id in replicas:
                        found[broker_id].append(f"{topic}-{index}")
    finally:
        await session.close()
    return found
