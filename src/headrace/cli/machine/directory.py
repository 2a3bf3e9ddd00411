"""The directory of `headrace up`: the data of one cluster, used by one process at a time.

DIR/up.pid          the process that runs the cluster
DIR/coordinator/    the embedded coordinator's data, or DIR/zookeeper/1, 2, 3
DIR/jaas.conf       user and password for the coordinator or ZooKeeper, which nobody else can read
DIR/broker-1/ …     the brokers' data
DIR/logs/           a file for each process
"""

import asyncio
import fcntl
import os
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from headrace.cli.support.process import CommandFailed
from headrace.coordination.credentials import FILE_NAME as CREDENTIALS

if TYPE_CHECKING:
    from headrace.broker.settings.config import BrokerConfig

LARGEST_LOG_BYTES: Final = 64 * 1024 * 1024  # at a start; a larger log is renamed and replaces the last one
_RELEASE_TIMEOUT_S: Final = 5.0  # processes that were killed together with their parent may still be exiting
_ZOOKEEPER_TIMEOUT_MS: Final = 18_000
_NAMED: Final = 3  # partitions in an error message
_BROKER: Final = re.compile(r"broker-(\d+)")


class DataDirectory:
    """Paths in DIR."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.coordinator = path / "coordinator"
        self.credentials = path / CREDENTIALS  # of the coordinator's or ZooKeeper's only user
        self.zookeeper = path / "zookeeper"
        self.logs = path / "logs"

    def broker(self, broker_id: int) -> Path:
        return self.path / f"broker-{broker_id}"

    def log(self, name: str) -> Path:
        """Return the log file of the process `name`, to which each start appends."""
        self.logs.mkdir(exist_ok=True)
        log = self.logs / f"{name}.log"
        if log.exists() and log.stat().st_size > LARGEST_LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
        return log

    def brokers(self) -> list[int]:
        """Return the ids of the brokers that have run here, by their directories."""
        found = (_BROKER.fullmatch(each.name) for each in self.path.iterdir() if each.is_dir())
        return sorted(int(match[1]) for match in found if match)

    @contextmanager
    def held(self) -> Iterator[int]:
        """Lock the directory while the block runs; yield a file descriptor that holds the lock in children.

        Raise CommandFailed if another process has it. After a kill -9 the directory is free once all children
        are gone.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            file = (self.path / "up.pid").open("a+")
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise CommandFailed(f"cannot write to {self.path}: {why}; choose another directory") from error
        with file:
            self._lock(file)
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
            yield file.fileno()

    def _lock(self, file: TextIO) -> None:
        """Lock the file twice: `lockf` locks it for this process alone, `flock` for its children as well."""
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            raise self._in_use(f"another `headrace up`, process {file.read().strip()}") from None
        deadline = time.monotonic() + _RELEASE_TIMEOUT_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise self._in_use("processes of an earlier `headrace up`") from None
                time.sleep(0.01)
            else:
                return

    def _in_use(self, by: str) -> CommandFailed:
        return CommandFailed(f"{self.path} is in use by {by}: stop it first, or choose another directory")


async def check_left_out_brokers(directory: DataDirectory, brokers: int, config: "BrokerConfig") -> None:
    """Raise CommandFailed if a broker that has run here, and is not started now, has replicas.

    `config` is a broker's, and says how to connect to ZooKeeper.
    """
    left_out = [each for each in directory.brokers() if each > brokers]
    if not left_out:
        return
    replicas = await _replicas(config)
    needed = [each for each in left_out if each in replicas]
    if needed:
        broker_id, on_it = needed[0], sorted(replicas[needed[0]])
        named = ", ".join(on_it[:_NAMED]) + (", ..." if len(on_it) > _NAMED else "")
        raise CommandFailed(
            f"{directory.path} has been run with broker {broker_id}, which has {len(on_it)} replicas "
            f"({named}): start with --brokers {needed[-1]}, and move them with "
            f"`headrace cluster drain {broker_id} --wait` before you leave it out"
        )


async def _replicas(config: "BrokerConfig") -> dict[int, list[str]]:
    """Return the partitions on each broker, as ZooKeeper has them."""
    from headrace.broker.security.zookeeper_security import zookeeper_security  # noqa: PLC0415  most starts do without
    from headrace.coordination.session import ZooKeeperSession  # noqa: PLC0415
    from headrace.coordination.znodes import TOPICS, TopicAssignment, topic_path  # noqa: PLC0415

    session = await ZooKeeperSession.connect(
        config.text("zookeeper.connect"),
        session_timeout_ms=_ZOOKEEPER_TIMEOUT_MS,
        connect_timeout_ms=_ZOOKEEPER_TIMEOUT_MS,
        security=await asyncio.to_thread(zookeeper_security, config),
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
