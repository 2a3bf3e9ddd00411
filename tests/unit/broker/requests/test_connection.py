"""A client's connection: requests in, responses out in the same order, and what ends it."""

import asyncio
import gc
import re
from collections.abc import Callable, Coroutine, Iterator
from itertools import pairwise
from typing import Any, cast

import pytest

from headrace.broker.network.connections import AUTHENTICATION_S, Connections
from headrace.broker.requests.connection import KafkaConnection
from headrace.broker.requests.dispatch import HANDLERS, Context, Handler, load_handlers, with_result
from headrace.broker.results import Result
from headrace.broker.server import Broker
from headrace.broker.settings.config import BrokerConfig
from headrace.broker.slices import FREED_TOGETHER, Steps, each
from headrace.cli.support.process import exempt_from_collections
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from headrace.protocol.schema.sasl_authenticate import SaslAuthenticateRequest
from headrace.protocol.schema.sasl_handshake import SaslHandshakeRequest
from headrace.security.listeners import Listener, SecurityProtocol
from wire.raw import frame_of

VERSION = 4


class FakeTransport:
    """What was written, and what became of the connection."""

    def __init__(self) -> None:
        self.written = b""
        self.is_reading = True
        self.is_closed = False

    def set_write_buffer_limits(self, *, high: int) -> None:
        assert high > 0

    def get_extra_info(self, _name: str) -> tuple[str, int]:
        return "10.0.0.1", 4711

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: bytes) -> None:
        self.written += data

    def writelines(self, buffers: list[bytes]) -> None:
        self.written += b"".join(buffers)

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def close(self) -> None:
        self.is_closed = True

    abort = close


class Client:
    """One connection to a broker whose ListGroups is `answer`."""

    def __init__(self, answer: Callable[[ListGroupsRequest, Context], Any]) -> None:
        broker = Broker(BrokerConfig.of({"broker.id": "1"}))
        broker._loop = asyncio.get_running_loop()
        broker.connections = Connections(broker.config, lambda: 0, broker.quotas)
        handler = Handler(ApiKey.LIST_GROUPS, range(5), with_result(answer), (), when_ready=False)
        listener = Listener("PLAINTEXT", SecurityProtocol.PLAINTEXT, is_inter_broker=False)
        self.transport = FakeTransport()
        self.connection = KafkaConnection(broker, {ApiKey.LIST_GROUPS: handler}, listener)
        self.connection.connection_made(cast("asyncio.Transport", self.transport))

    def send(self, data: bytes) -> None:
        """Have bytes arrive, in pieces as large as the receive buffer allows."""
        while data:
            buffer = self.connection.get_buffer(-1)
            size = min(len(buffer), len(data))
            buffer[:size] = data[:size]
            self.connection.buffer_updated(size)
            data = data[size:]

    async def served(self) -> None:
        """Return when every request that has arrived was handled; a slow machine needs several turns."""
        while self.connection._backlog:  # noqa: ASYNC110  there is no event to wait for
            await asyncio.sleep(0)

    def names(self) -> list[str]:
        """Return the group ids in the responses, in their order."""
        return re.findall("<(.+?)>", self.transport.written.decode("latin-1"))


def request(name: str) -> bytes:
    return bytes(frame_of(ListGroupsRequest(states_filter=[name]), VERSION))


def response(name: str) -> ListGroupsResponse:
    return ListGroupsResponse(
        error_code=0, groups=[ListedGroup(group_id=f"<{name}>", protocol_type="", group_state="")]
    )


def at_once(asked: ListGroupsRequest, _context: Context) -> ListGroupsResponse:
    return response(asked.states_filter[0])


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(story())


def test_requests_are_answered_in_their_order_however_the_bytes_arrive() -> None:
    async def story() -> None:
        client = Client(at_once)
        for byte in request("a") + request("b"):
            client.send(bytes([byte]))
        client.send(request("c") + request("d"))
        await client.served()

        assert client.names() == ["a", "b", "c", "d"]

    run(story)


def test_a_response_that_is_ready_waits_for_the_earlier_ones() -> None:
    async def story() -> None:
        first: asyncio.Future[ListGroupsResponse] = asyncio.get_running_loop().create_future()

        def answer(asked: ListGroupsRequest, context: Context) -> Result:
            if asked.states_filter == ["a"]:
                return Result(later=first)
            return Result(at_once(asked, context))

        client = Client(answer)
        client.send(request("a") + request("b"))
        await client.served()
        assert client.names() == []

        first.set_result(response("a"))
        await asyncio.gather(*client.connection._tasks)

        assert client.names() == ["a", "b"]

    run(story)


def test_a_client_that_does_not_read_its_responses_is_not_read_from() -> None:
    async def story() -> None:
        client = Client(at_once)

        client.connection.pause_writing()
        assert not client.transport.is_reading
        client.connection.resume_writing()
        assert client.transport.is_reading

    run(story)


def test_a_connection_that_is_lost_cancels_the_requests_that_wait() -> None:
    async def story() -> None:
        forever: asyncio.Future[ListGroupsResponse] = asyncio.get_running_loop().create_future()

        def answer(_asked: ListGroupsRequest, _context: Context) -> Result:
            return Result(later=forever)

        client = Client(answer)
        client.send(request("a"))
        await client.served()
        (task,) = client.connection._tasks

        client.connection.connection_lost(None)
        await asyncio.wait([task])

        assert task.cancelled()

    run(story)


def _fails(_asked: ListGroupsRequest, _context: Context) -> ListGroupsResponse:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (b"\x7f\xff\xff\xff", at_once),
        (b"\xff\xff\xff\xff", at_once),
        (b"\x00\x00\x00\x01\x00", at_once),
        (
            bytes(frame_of(ListGroupsRequest(), 0)).replace(b"\x00\x10\x00\x00", b"\x00\x7f\x00\x00", 1),
            at_once,
        ),
        (request("a"), _fails),
    ],
    ids=["frame too large", "negative size", "no header", "unknown API", "a bug in a handler"],
)
def test_what_cannot_be_answered_ends_the_connection(data: bytes, answer: Callable[..., Any]) -> None:
    async def story() -> None:
        client = Client(answer)

        client.send(data)
        await client.served()

        assert client.transport.is_closed
        assert client.transport.written == b""

    run(story)


class SaslClient(Client):
    """One connection to a listener that requires PLAIN."""

    def __init__(self) -> None:
        config = BrokerConfig.of(
            {
                "listeners": "SASL_PLAINTEXT://:9092",
                "security.inter.broker.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
                "sasl.enabled.mechanisms": "PLAIN",
                "sasl.jaas.config": 'PlainLoginModule required username="b" password="c" user_ann="secret";',
            }
        )
        load_handlers()
        self.broker = Broker(config)
        self.broker._loop = asyncio.get_running_loop()
        self.broker.connections = Connections(config, lambda: 0, self.broker.quotas)
        self.transport = FakeTransport()
        self.connection = KafkaConnection(self.broker, HANDLERS, config.listener("SASL_PLAINTEXT"))
        self.connection.connection_made(cast("asyncio.Transport", self.transport))

    def wait(self, seconds: float) -> None:
        """Have the connection be older by this time, and look for connections to close."""
        if self.connection.authenticating_since is not None:
            self.connection.authenticating_since -= seconds
        self.broker.connections.close_idle()


def test_a_client_that_drips_its_authentication_is_disconnected() -> None:
    async def story() -> None:
        client = SaslClient()
        message = bytes(frame_of(SaslHandshakeRequest(mechanism="PLAIN"), 1))
        client.send(message[:1])
        client.wait(AUTHENTICATION_S - 1)
        assert not client.transport.is_closed
        client.send(message[1:])
        client.wait(2)

        assert client.transport.is_closed

    run(story)


def test_a_client_that_has_authenticated_has_no_deadline() -> None:
    async def story() -> None:
        client = SaslClient()
        client.send(bytes(frame_of(SaslHandshakeRequest(mechanism="PLAIN"), 1)))
        client.send(bytes(frame_of(SaslAuthenticateRequest(auth_bytes=b"\0ann\0secret"), 2)))
        await client.served()
        client.wait(2 * AUTHENTICATION_S)

        assert client.connection.authenticating_since is None
        assert not client.transport.is_closed

    run(story)


MANY = 100_000


def many_groups() -> Iterator[ListedGroup]:
    return (ListedGroup(group_id="", protocol_type="", group_state="") for _ in range(MANY))


def large_request() -> bytes:
    """Return a request that is decoded, and whose response is encoded, in slices."""
    return bytes(frame_of(ListGroupsRequest(states_filter=["x" * 1000] * 40), VERSION))


def test_a_large_response_is_freed_a_little_in_each_iteration_of_the_event_loop() -> None:
    freed = 0

    class CountedGroup(ListedGroup):
        def __del__(self) -> None:
            nonlocal freed
            freed += 1

    async def answer(_asked: ListGroupsRequest, _context: Context) -> ListGroupsResponse:
        groups = [CountedGroup(group_id="", protocol_type="", group_state="") for _ in range(MANY)]
        return ListGroupsResponse(error_code=0, groups=groups)

    async def story() -> None:
        client = Client(answer)
        client.send(large_request())
        counts = [freed]
        while freed < MANY:
            await asyncio.sleep(0)
            counts.append(freed)

        assert len(client.transport.written) > MANY
        # A task may wait for its turn while the event loop ends an iteration, and begins the next.
        assert max(after - before for before, after in pairwise(counts)) <= 2 * FREED_TOGETHER

    run(story)


def test_no_garbage_collection_traverses_all_objects_of_a_large_response() -> None:
    traversed = []

    def count(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            traversed.append(sum(len(gc.get_objects(each)) for each in range(info["generation"] + 1)))

    def answer(_asked: ListGroupsRequest, _context: Context) -> Steps[ListGroupsResponse]:
        groups = yield from each(lambda group: group, many_groups())
        return ListGroupsResponse(error_code=0, groups=groups)

    async def story() -> None:
        client = Client(answer)
        client.send(large_request())
        await asyncio.gather(*client.connection._tasks)
        assert len(client.transport.written) > MANY

    thresholds = gc.get_threshold()
    exempt_from_collections()
    gc.callbacks.append(count)
    try:
        run(story)
    finally:
        del gc.callbacks[-2:]
        gc.set_threshold(*thresholds)
        gc.unfreeze()

    assert len(traversed) > MANY // 1000
    assert max(traversed) < MANY // 2
