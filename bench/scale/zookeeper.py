"""How fast partition states are written to ZooKeeper and read from it, by the code of the controller.

This is the part of a failover that the simulated cluster leaves out. One after the other: the embedded
coordinator, and an ensemble of three Apache ZooKeeper servers on the same machine and disk.
"""

import asyncio
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from compare.clusters import PROGRAM, environment
from compare.node import Node
from headrace.broker.membership.cluster import prepare
from headrace.coordination.session import ZooKeeperSession
from headrace.coordination.znodes import Config, Controller, TopicAssignment
from headrace.protocol.ids import TopicPartition
from headrace.replication.controller.model import ClusterModel, Member, TopicRules
from headrace.replication.controller.store import first_state, read_topics
from headrace.replication.controller.transactions import (
    ElectedEpoch,
    create_topic,
    elect_controller,
    state_of,
    write_changes,
)

TOPICS: Final = 5
PER_TOPIC: Final = 1000
WRITTEN_TOGETHER: Final = 1000  # as the controller does
RULES: Final = TopicRules(min_insync_replicas=2, unclean_allowed=False)
MEMBERS: Final = {each: Member(broker_id=each, epoch=each) for each in (1, 2, 3)}
COMMANDS: Final = {
    "embedded coordinator": ["coordinator"],
    "ZooKeeper, 3 servers": ["zookeeper", "--servers", "3"],
}
_ADDRESSES: Final = re.compile(r"127\.0\.0\.1:\d+(?:,127\.0\.0\.1:\d+)*")


def lines(root: Path) -> Iterator[str]:
    """Measure both, and iterate over the lines that say how fast they are."""
    for name, command in COMMANDS.items():
        directory = root / command[0]
        node = Node(
            [PROGRAM, *command, "--data", str(directory), "--port", "0"],
            root / f"{command[0]}.log",
            environment(root),
        )
        node.start()
        try:
            node.wait_until_it_says("ready")
            found = _ADDRESSES.search(node.log.read_text())
            assert found is not None, node.last_words()
            figures = asyncio.run(_measure(found[0]))
        finally:
            node.stop()
        for what, per_second in figures.items():
            yield f"  {name + ': ' + what:<62} {per_second:,.0f} per s"


async def _measure(servers: str) -> dict[str, float]:
    session = await ZooKeeperSession.connect(servers, session_timeout_ms=30_000, connect_timeout_ms=30_000)
    try:
        await prepare(session)
        elected = await elect_controller(session, Controller(broker_id=1, timestamp_ms=0))
        assert elected is not None, "there is no other controller"
        return await _write_and_read(session, elected)
    finally:
        await session.close()


async def _write_and_read(session: ZooKeeperSession, elected: ElectedEpoch) -> dict[str, float]:
    count = TOPICS * PER_TOPIC
    began = time.perf_counter()
    for number in range(TOPICS):
        await _create(session, elected, f"t{number}")
    created = time.perf_counter()
    model = ClusterModel(
        members=dict(MEMBERS), topics=await read_topics(session, MEMBERS, lambda _own: RULES)
    )
    read = time.perf_counter()
    await _elect_others(session, elected, model)
    written = time.perf_counter()
    return {
        "partitions created": count / (created - began),
        "partition states read": count / (read - created),
        "partition states written": count / (written - read),
    }


async def _create(session: ZooKeeperSession, elected: ElectedEpoch, name: str) -> None:
    topic = TopicAssignment(
        topic=name, topic_id=name.encode().ljust(16), replicas=dict.fromkeys(range(PER_TOPIC), (1, 2, 3))
    )
    states = [
        state_of(TopicPartition(name, index), first_state((1, 2, 3), RULES), elected.epoch, MEMBERS)
        for index in topic.replicas
    ]
    no_configs: Mapping[str, str] = {}
    await create_topic(session, elected, topic, Config(kind="topics", name=name, values=no_configs), states)


async def _elect_others(session: ZooKeeperSession, elected: ElectedEpoch, model: ClusterModel) -> None:
    changes = {
        key: replace(partition, leader=2, leader_epoch=partition.leader_epoch + 1, isr=(2, 3))
        for key, partition in model.items()
    }
    keys = list(changes)
    for first in range(0, len(keys), WRITTEN_TOGETHER):
        some = keys[first : first + WRITTEN_TOGETHER]
        await write_changes(session, elected, model, {key: changes[key] for key in some})
