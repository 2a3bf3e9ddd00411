"""A broker of a large cluster, as far as it learns the state of all partitions: it has no replica of them."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from headrace.broker.image import ClusterImage, TopicImage
from headrace.broker.meters import Meters
from headrace.broker.peers.peer import Peer
from headrace.broker.replicas.replicas import Replicas
from headrace.broker.settings.config import BrokerConfig
from headrace.protocol.between_brokers.update_metadata import UpdateMetadataRequest
from headrace.protocol.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.peers import PeerGone
from headrace.replication.controller.updates import VERSIONS
from headrace.storage.config import LogConfig
from headrace.storage.directory import LogDirectory
from headrace.storage.identity import Identity

BROKER_ID: Final = 1_000_000  # has no replica of any partition


class _Ignored:
    """A listener to whom nothing matters."""

    def updated(self) -> None: ...

    def topic_changed(self, topic: TopicImage, own: Mapping[str, str]) -> None: ...

    def topic_removed(self, name: str) -> None: ...


async def _nobody(broker_id: int) -> Peer:
    raise PeerGone(f"broker {broker_id} does not exist")


async def _no_controller(request: Message, versions: range, *, timeout_s: float) -> Any:
    raise PeerGone(f"no controller in {timeout_s} s for {request!r} {versions}")


class Receiver:
    """Decodes and applies encoded UpdateMetadata requests, and has the metadata of the cluster then."""

    def __init__(self, logs: LogDirectory) -> None:
        config = BrokerConfig.of({"broker.id": str(BROKER_ID)})
        self.image = ClusterImage("c")
        self._replicas = Replicas(
            BROKER_ID,
            self.image,
            Meters(),
            _Ignored(),
            config=lambda: config,
            logs=lambda: logs,
            broker_epoch=lambda: -1,
            connect_to=_nobody,
            ask_controller=_no_controller,
        )

    async def take(self, body: bytes) -> None:
        code = await self._replicas.take(UpdateMetadataRequest.decode(body, VERSIONS[-1]))
        assert code is ErrorCode.NONE, code

    def stop(self) -> None:
        self._replicas.stop()


@contextmanager
def receiver(directory: Path) -> Iterator[Receiver]:
    """Give a broker with an empty log directory; to be used on an event loop."""
    asyncio.get_running_loop()
    logs = LogDirectory.open(
        directory, Identity(BROKER_ID, "c"), config_of=lambda _topic: LogConfig(), now_ms=lambda: 0
    )
    found = Receiver(logs)
    try:
        yield found
    finally:
        found.stop()
        logs.release()
