"""This broker as a client of the controller, wherever that is: requests and controlled shutdown."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from headrace.broker.errors import RefusedByController
from headrace.broker.peers.peer import Peer, Peers, PeerVersions
from headrace.coordination.errors import CoordinationError
from headrace.coordination.znodes import BrokerRegistration
from headrace.protocol.errors import ErrorCode
from headrace.protocol.kafka_errors import NotController
from headrace.protocol.message import Message
from headrace.protocol.peers import PeerGone
from headrace.protocol.schema import create_topics as api
from headrace.protocol.schema.broker_heartbeat import BrokerHeartbeatRequest
from headrace.replication.controller.topic_admin import BROKER_DEFAULT

_NO_CONTROLLER_TIMEOUT_S = 10.0  # how long a request waits for a controller to be elected
_RECONNECT_S = 0.02
_UNREGISTERED_RETRY_S = 0.1
_CREATE_TIMEOUT_S = 60.0
_SHUTDOWN_TIMEOUT_S = 10.0
_SHUTDOWN_RETRY_S = 0.05
CREATE_TOPICS_VERSIONS = range(5, 8)  # their requests and responses mean the same here
SHUTDOWN_VERSIONS = range(1)  # of BrokerHeartbeat

logger = logging.getLogger(__name__)


class ControllerClient:
    """Keeps a connection to the controller, or calls the handlers while this broker is the controller."""

    def __init__(
        self,
        peers: Peers,
        *,
        broker_id: int,
        is_controller: Callable[[], bool],
        handle_locally: Callable[[Message, int], Awaitable[Any]],
    ) -> None:
        self._peers = peers
        self._broker_id = broker_id
        self._is_controller = is_controller
        self._handle_locally = handle_locally
        self._controller_id = -1
        self._is_remote = asyncio.Event()  # set while another broker is the controller
        self._peer: Peer | None = None
        self._connecting: asyncio.Task[None] | None = None

    def start(self, registrations: Mapping[int, BrokerRegistration]) -> None:
        """Connect to whichever of the registered brokers is the controller."""
        self._connecting = asyncio.create_task(self._keep_connected(registrations))

    async def controller_changed(self, controller_id: int) -> None:
        """Connect to another controller; -1: there is none."""
        self._controller_id = controller_id
        self._disconnect()
        if controller_id in {-1, self._broker_id}:
            self._is_remote.clear()
        else:
            self._is_remote.set()

    def stop(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
        self._disconnect()

    def _disconnect(self) -> None:
        if self._peer is not None:
            self._peer.close()
            self._peer = None

    async def _keep_connected(self, registrations: Mapping[int, BrokerRegistration]) -> None:
        """Keep a connection to the controller. Losing it does not mean that the controller is dead."""
        while True:
            await self._is_remote.wait()
            controller_id = self._controller_id
            registration = registrations.get(controller_id)
            if registration is None:
                await asyncio.sleep(_UNREGISTERED_RETRY_S)
                continue
            try:
                peer = await self._peers.connect(registration)
            except PeerGone as error:
                logger.debug("no connection to the controller, broker %d: %s", controller_id, error)
                await asyncio.sleep(_RECONNECT_S)
                continue
            if self._controller_id != controller_id:  # it changed while we connected
                peer.close()
                continue
            self._peer = peer
            await peer.closed()

    # -- requests ------------------------------------------------------------------------------

    @property
    def versions(self) -> PeerVersions | None:
        """The versions that the controller supports; None if it is this broker, or not known."""
        return None if self._is_controller() or self._peer is None else self._peer.versions

    def choose(self, key: int, versions: range) -> int:
        """Return the highest version of an API that the controller supports, or raise UnsupportedByPeer."""
        return versions[-1] if self.versions is None else self.versions.choose(key, versions)

    async def ask(self, request: Message, versions: range, *, timeout_s: float) -> Any:
        """Return the controller's response, waiting for the next controller to be elected if there is none.

        Raise NotController if none is elected in time, and PeerGone if the connection ends first.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _NO_CONTROLLER_TIMEOUT_S
        while loop.time() < deadline:
            if self._is_controller():
                return await self._handle_locally(request, versions[-1])
            if self._peer is not None and self._peer.is_open:
                return await self._peer.ask(request, versions, timeout_s=timeout_s)
            await asyncio.sleep(_RECONNECT_S)
        raise NotController("there is no controller at the moment (NOT_CONTROLLER)")

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = BROKER_DEFAULT,
        replicas: int = BROKER_DEFAULT,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic; on return this broker knows it. KafkaError with the controller's code if not."""
        (result,) = await self._create([new_topic(name, partitions, replicas, configs or {})])
        if result.error_code:
            raise RefusedByController(ErrorCode(result.error_code), result.error_message or "")

    async def create_topics(self, names: Iterable[str]) -> dict[str, ErrorCode]:
        """Create topics with the broker's defaults, in one request; return the errors of those refused."""
        return refused_topics(await self._create([new_topic(name) for name in names]))

    async def _create(self, topics: Sequence[api.CreatableTopic]) -> Sequence[api.CreatableTopicResult]:
        request = api.CreateTopicsRequest(topics=topics, timeout_ms=0)  # the client that needs them retries
        try:
            response = await self.ask(request, CREATE_TOPICS_VERSIONS, timeout_s=_CREATE_TIMEOUT_S)
        except PeerGone as error:
            raise NotController(f"the controller has not answered: {error} (NOT_CONTROLLER)") from error
        results: Sequence[api.CreatableTopicResult] = response.topics
        return results

    # -- shutdown ------------------------------------------------------------------------------

    async def controlled_shutdown(self, broker_epoch: int) -> None:
        """Have other brokers lead what this one leads, as far as they can, before it stops."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _SHUTDOWN_TIMEOUT_S
        request = BrokerHeartbeatRequest(
            broker_id=self._broker_id,
            broker_epoch=broker_epoch,
            current_metadata_offset=0,
            want_fence=False,
            want_shut_down=True,
        )
        while loop.time() < deadline:
            try:
                response = await self.ask(request, SHUTDOWN_VERSIONS, timeout_s=_SHUTDOWN_TIMEOUT_S)
            except (PeerGone, NotController, CoordinationError) as error:
                logger.info("shutting down without the controller: %s", error)
                return
            if response.error_code or response.should_shut_down:
                return
            await asyncio.sleep(_SHUTDOWN_RETRY_S)
        logger.warning("shutting down although this broker still leads some partitions")


def new_topic(
    name: str,
    partitions: int = BROKER_DEFAULT,
    replicas: int = BROKER_DEFAULT,
    configs: Mapping[str, str] = MappingProxyType({}),
) -> api.CreatableTopic:
    """Return a topic of a CreateTopics request."""
    return api.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=(),
        configs=[api.CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
    )


def refused_topics(results: Iterable[api.CreatableTopicResult]) -> dict[str, ErrorCode]:
    """Return the error codes of the topics that were not created."""
    return {result.name: ErrorCode(result.error_code) for result in results if result.error_code}
