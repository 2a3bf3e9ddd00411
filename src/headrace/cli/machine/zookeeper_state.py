"""What `headrace up` reads and writes in ZooKeeper before any broker runs: replicas, and the first user."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from headrace.broker.security.zookeeper_security import zookeeper_security
from headrace.broker.settings.config import BrokerConfig
from headrace.cli.machine.secure import ADMINISTRATOR, SecureCluster
from headrace.cli.support.process import CommandFailed
from headrace.coordination.session import ZooKeeperSession
from headrace.coordination.znodes import TOPICS, Config, TopicAssignment, topic_path
from headrace.security.sasl.exchange import SCRAM_SHA_512
from headrace.security.sasl.scram import ScramCredential

ITERATIONS: Final = 8192
_NAMED: Final = 3  # partitions in an error message
_USERS: Final = "users"

logger = logging.getLogger("headrace")


@asynccontextmanager
async def connected(config: BrokerConfig) -> AsyncIterator[ZooKeeperSession]:
    """Open a session as the broker with these settings would."""
    session = await ZooKeeperSession.connect(
        config.text("zookeeper.connect"),
        session_timeout_ms=config.integer("zookeeper.session.timeout.ms"),
        connect_timeout_ms=config.integer("zookeeper.connection.timeout.ms"),
        security=await asyncio.to_thread(zookeeper_security, config),
    )
    try:
        yield session
    finally:
        await session.close()


async def check_no_replicas(directory: Path, left_out: Collection[int], config: BrokerConfig) -> None:
    """Raise CommandFailed if a broker that has run here, and is not started now, has replicas."""
    partitions: dict[int, list[str]] = defaultdict(list)  # by broker
    async with connected(config) as session:
        for topic in await session.children(TOPICS):
            znode = await session.get(topic_path(topic))
            if znode is not None:
                for index, replicas in TopicAssignment.decode(topic, znode.data).replicas.items():
                    for broker_id in replicas:
                        partitions[broker_id].append(f"{topic}-{index}")
    needed = [broker_id for broker_id in left_out if broker_id in partitions]
    if needed:
        on_it = sorted(partitions[needed[0]])
        named = ", ".join(on_it[:_NAMED]) + (", ..." if len(on_it) > _NAMED else "")
        raise CommandFailed(
            f"{directory} has been run with broker {needed[0]}, which has {len(on_it)} replicas "
            f"({named}): start with --brokers {needed[-1]}, and move them with "
            f"`headrace cluster drain {needed[0]} --wait` before you leave it out"
        )


async def ensure_administrator(config: BrokerConfig, secure: SecureCluster) -> None:
    """Store the administrator's password in Kafka's form, unless there is one and its file is not new."""
    name, path = ADMINISTRATOR, Config.path_of(_USERS, ADMINISTRATOR)
    async with connected(config) as session:
        znode = await session.get(path)
        values = {} if znode is None else dict(Config.decode(_USERS, name, znode.data).values)
        if SCRAM_SHA_512 in values and not secure.is_new_password:
            stored = ScramCredential.decode(values[SCRAM_SHA_512])
            if stored != ScramCredential.of_password(
                SCRAM_SHA_512, secure.password, iterations=stored.iterations, salt=stored.salt
            ):
                logger.warning("the password in %s is not that of user %s any more", secure.client_file, name)
            return
        made = ScramCredential.of_password(SCRAM_SHA_512, secure.password, iterations=ITERATIONS)
        values[SCRAM_SHA_512] = made.encode()
        await session.ensure(path)
        await session.set(path, Config(kind=_USERS, name=name, values=values).encode())
