"""Requests to the controller: to this broker's own, or over a connection to another one."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from headrace.broker.errors import RefusedByController
from headrace.broker.membership.controller_client import ControllerClient
from headrace.broker.peers.peer import Peers
from headrace.coordination.znodes import BrokerRegistration
from headrace.protocol.errors import ErrorCode
from headrace.protocol.kafka_errors import NotController
from headrace.protocol.message import Message
from headrace.protocol.peers import PeerGone
from headrace.protocol.schema.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from headrace.protocol.schema.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

HERE, THERE, ELSEWHERE = 1, 2, 3
REGISTERED = {
    each: BrokerRegistration(broker_id=each, endpoints=[], timestamp_ms=0) for each in (HERE, THERE)
}


class FakePeer:
    """A connection to the broker that is called `broker_id`, which answers as `answer` says."""

    def __init__(self, broker_id: int, answer: Callable[[Message], Any]) -> None:
        self.broker_id = broker_id
        self.is_open = True
        self._answer = answer
        self._closed = asyncio.Event()

    async def ask(self, request: Message, _versions: range, *, timeout_s: float) -> Any:
        assert timeout_s > 0
        return self._answer(request)

    async def closed(self) -> None:
        await self._closed.wait()

    def close(self) -> None:
        self.is_open = False
        self._closed.set()


class Cluster:
    """The brokers that a client connects to, one after another."""

    def __init__(self) -> None:
        self.peers: list[FakePeer] = []
        self.requests: list[Message] = []
        self.answer: Callable[[Message], Any] = lambda _request: "from afar"
        self.is_controller_here = False
        self.connected = asyncio.Event()

    async def connect(self, registration: BrokerRegistration) -> FakePeer:
        self.peers.append(FakePeer(registration.broker_id, self._answered))
        asyncio.get_running_loop().call_soon(self.connected.set)
        return self.peers[-1]

    def _answered(self, request: Message) -> Any:
        self.requests.append(request)
        return self.answer(request)

    async def handle_locally(self, _request: Message, _version: int) -> Any:
        return "from here"


def run(story: Callable[[Cluster, ControllerClient], Coroutine[Any, Any, None]]) -> None:
    async def play() -> None:
        cluster = Cluster()
        client = ControllerClient(
            cast("Peers", cluster),
            broker_id=HERE,
            is_controller=lambda: cluster.is_controller_here,
            handle_locally=cluster.handle_locally,
        )
        client.start(REGISTERED)
        await story(cluster, client)
        client.stop()

    asyncio.run(play())


async def found(cluster: Cluster, client: ControllerClient) -> None:
    """Have broker 2 be the controller, and wait until the client is connected to it."""
    await client.controller_changed(THERE)
    await cluster.connected.wait()


REQUEST = BrokerHeartbeatRequest(
    broker_id=HERE, broker_epoch=7, current_metadata_offset=0, want_fence=False, want_shut_down=False
)


def test_the_controller_is_this_broker_or_another_one() -> None:
    async def story(cluster: Cluster, client: ControllerClient) -> None:
        cluster.is_controller_here = True
        assert await client.ask(REQUEST, range(1), timeout_s=1) == "from here"
        cluster.is_controller_here = False
        await found(cluster, client)
        assert await client.ask(REQUEST, range(1), timeout_s=1) == "from afar"
        assert [peer.broker_id for peer in cluster.peers] == [THERE]

    run(story)


def test_the_connection_to_a_former_controller_is_closed() -> None:
    async def story(cluster: Cluster, client: ControllerClient) -> None:
        await found(cluster, client)

        await client.controller_changed(HERE)

        assert not cluster.peers[0].is_open

    run(story)


def test_a_connection_that_ends_is_made_again() -> None:
    async def story(cluster: Cluster, client: ControllerClient) -> None:
        await found(cluster, client)
        cluster.connected.clear()

        cluster.peers[0].close()

        await cluster.connected.wait()
        assert len(cluster.peers) == 2
        assert await client.ask(REQUEST, range(1), timeout_s=1) == "from afar"

    run(story)


def refused(*codes: int) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=f"t{number}", error_code=code, error_message="no")
            for number, code in enumerate(codes)
        ]
    )


def test_a_topic_that_the_controller_refuses_is_an_error_with_its_code() -> None:
    async def story(cluster: Cluster, client: ControllerClient) -> None:
        await found(cluster, client)
        cluster.answer = lambda _request: refused(ErrorCode.TOPIC_ALREADY_EXISTS)

        with pytest.raises(RefusedByController) as error:
            await client.create_topic("t0", partitions=3, configs={"retention.ms": "1"})

        assert error.value.code == ErrorCode.TOPIC_ALREADY_EXISTS
        (request,) = cluster.requests
        assert isinstance(request, CreateTopicsRequest)
        assert [(each.name, each.value) for each in request.topics[0].configs] == [("retention.ms", "1")]

    run(story)


def test_the_errors_of_several_topics_are_returned_by_name() -> None:
    async def story(cluster: Cluster, client: ControllerClient) -> None:
        await found(cluster, client)
        cluster.answer = lambda _request: refused(0, ErrorCode.POLICY_VIOLATION)

        assert await client.create_topics(["t0", "t1"]) == {"t1": ErrorCode.POLICY_VIOLATION}

    run(story)


def test_a_connection_that_ends_under_a_create_topics_is_not_controller() -> None:
    def gone(_request: Message) -> Any:
        raise PeerGone("the connection has ended")

    async def story(cluster: Cluster, client: ControllerClient) -> None:
        await found(cluster, client)
        cluster.answer = gone

        with pytest.raises(NotController):
            await client.create_topic("t0")

    run(story)


@pytest.mark.parametrize(
    "last",
    [
        BrokerHeartbeatResponse(error_code=0, is_caught_up=True, is_fenced=False, should_shut_down=True),
        BrokerHeartbeatResponse(
            error_code=ErrorCode.STALE_BROKER_EPOCH,
            is_caught_up=True,
            is_fenced=False,
            should_shut_down=False,
        ),
    ],
)
def test_a_controlled_shutdown_ends_when_the_controller_agrees_or_refuses(
    last: BrokerHeartbeatResponse,
) -> None:
    async def story(cluster: Cluster, client: ControllerClient) -> None:
        await found(cluster, client)
        cluster.answer = lambda _request: last

        await client.controlled_shutdown(broker_epoch=7)

        (request,) = cluster.requests
        assert isinstance(request, BrokerHeartbeatRequest)
        assert (request.broker_epoch, request.want_shut_down) == (7, True)

    run(story)
