"""The first user of a secured cluster, written to ZooKeeper in Kafka's form before any broker runs."""

import asyncio
import logging
from typing import Final

from headrace.broker.security.zookeeper_security import zookeeper_security
from headrace.broker.settings.config import BrokerConfig
from headrace.cli.machine.secure import ADMINISTRATOR, SecureCluster
from headrace.coordination.session import ZooKeeperSession
from headrace.coordination.znodes import Config
from headrace.security.sasl.exchange import SCRAM_SHA_512
from headrace.security.sasl.scram import ScramCredential

ITERATIONS: Final = 8192
_TIMEOUT_MS: Final = 18_000
_USERS: Final = "users"

logger = logging.getLogger("headrace")


async def ensure_administrator(config: BrokerConfig, secure: SecureCluster) -> None:
    """Store the administrator's password unless there is one already and its file is not new."""
    name, password = ADMINISTRATOR, secure.password
    session = await ZooKeeperSession.connect(
        config.text("zookeeper.connect"),
        session_timeout_ms=_TIMEOUT_MS,
        connect_timeout_ms=_TIMEOUT_MS,
        security=await asyncio.to_thread(zookeeper_security, config),
    )
    try:
        path = Config.path_of(_USERS, name)
        znode = await session.get(path)
        values = {} if znode is None else dict(Config.decode(_USERS, name, znode.data).values)
        if SCRAM_SHA_512 in values and not secure.is_new_password:
            stored = ScramCredential.decode(values[SCRAM_SHA_512])
            if stored != ScramCredential.of_password(
                SCRAM_SHA_512, password, iterations=stored.iterations, salt=stored.salt
            ):
                logger.warning("the password in %s is not that of user %s any more", secure.client_file, name)
            return
        made = ScramCredential.of_password(SCRAM_SHA_512, password, iterations=ITERATIONS)
        values[SCRAM_SHA_512] = made.encode()
        await session.ensure(path)
        await session.set(path, Config(kind=_USERS, name=name, values=values).encode())
    finally:
        await session.close()
