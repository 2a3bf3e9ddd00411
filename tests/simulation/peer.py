"""Connections between brokers, and from clients to brokers, on the simulated network.

What travels are the messages themselves, not their bytes: what `peers.peer` and `requests.connection` do
with bytes has tests of its own. The rest is as there: answers come in the order of the questions, a question
that takes too long ends the connection, and whoever loses its client stops working for it.
"""

import asyncio
import inspect
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.broker.peers.peer import PeerVersions
from headrace.broker.requests.dispatch import HANDLERS, Context, Handler, HangUp, can_answer
from headrace.broker.slices import at_once
from headrace.protocol.peers import PeerGone
from headrace.protocol.schema.list_offsets import ListOffsetsResponse
from headrace.security.listeners import Endpoint
from simulation.loop import SimLoop
from simulation.network import End, Unreachable

if TYPE_CHECKING:
    from simulation.broker import SimBroker

NOTHING = ListOffsetsResponse(topics=[])


class WhoLeads(NamedTuple):
    """A client's question to any broker: a Metadata request, as far as our clients need one."""

    topic: str
    partition: int


class Peer:
    """The asking end: takes the place of `headrace.broker.peers.peer.Peer`."""

    def __init__(self, end: End) -> None:
        self._end = end
        self._process = end.process
        self._asked: deque[asyncio.Future[Any]] = deque()
        self._gone = end.process.loop.create_future()
        end.receive, end.lost = self._receive, self._lost
        self.versions = PeerVersions({key: each.versions for key, each in HANDLERS.items()})
        self.on_unsupported: object = None  # all brokers here are of one version

    @classmethod
    async def connect(
        cls,
        endpoint: Endpoint,
        _client_id: str = "",
        _pool: object = None,
        _credentials: object = None,
        _tls: object = None,
    ) -> "Peer":
        """Return a connection from the process that runs this."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop), loop
        try:
            return cls(await loop.process.network.connect(loop.process, endpoint.host))
        except Unreachable as error:
            raise PeerGone(str(error)) from error

    @property
    def is_open(self) -> bool:
        return self._end.is_open

    def common_versions(self, key: int, versions: range) -> range:
        return self.versions.common(key, versions)

    async def closed(self) -> None:
        await asyncio.shield(self._gone)

    def close(self) -> None:
        if self._process.is_alive and self._end.is_open:
            self._end.close()
            self._process.call(self._lost)  # as asyncio says connection_lost: soon, and not at once

    async def ask(self, request: Any, versions: range | int, *, timeout_s: float | None = None) -> Any:
        if not self._end.is_open:
            raise PeerGone("the connection has ended")
        future = self._process.loop.create_future()
        self._asked.append(future)
        version = versions if isinstance(versions, int) else versions[-1]  # a client gives one
        self._end.send((request, version))
        timer = None if timeout_s is None else self._process.call(self._late, future, after_s=timeout_s)
        try:
            return await future
        finally:
            if timer is not None:
                timer.cancel()

    def _late(self, future: "asyncio.Future[Any]") -> None:
        if not future.done():
            future.set_exception(PeerGone("no answer in time"))
            self.close()

    def _receive(self, answer: object) -> None:
        future = self._asked.popleft()
        if not future.done():
            future.set_result(answer)

    def _lost(self) -> None:
        if not self._gone.done():
            self._gone.set_result(None)
        while self._asked:
            future = self._asked.popleft()
            if not future.done():
                future.set_exception(PeerGone("the connection has ended"))


class Served:
    """The answering end: takes the place of `headrace.broker.requests.connection.Connection`."""

    def __init__(self, end: End, broker: "SimBroker") -> None:
        self._end = end
        self._broker = broker
        self._listener = broker.config.listener("PLAINTEXT")  # parsed once: there are many requests
        self._slots: deque[list[Any]] = deque()  # of replies, in the order of the requests
        self._tasks: dict[asyncio.Task[None], None] = {}
        end.receive, end.lost = self._receive, self._lost

    def _receive(self, message: tuple[Any, int]) -> None:
        slot: list[Any] = []
        self._slots.append(slot)
        try:
            result = self._handle(*message)
        except HangUp:
            self._hang_up()
            return
        if inspect.isawaitable(result):
            task = self._end.process.loop.create_task(self._fill(slot, result))
            self._tasks[task] = None
            task.add_done_callback(self._tasks.pop)
        else:
            slot.append(result)
            self._send_ready()

    def _handle(self, request: Any, version: int) -> Any:
        if isinstance(request, WhoLeads):
            return self._broker.who_leads(request)
        if self._broker.withholds(request):
            return NOTHING
        handler = HANDLERS[request.__api_key__]
        context = Context(self._broker, self._listener, "somebody", version)
        if (handler.on_controller or handler.when_ready) and not can_answer(handler, self._broker):
            return self._answer_when_ready(request, handler, context)
        result = handler.function(request, context)
        if result.steps is not None:
            result = at_once(result.steps)
        return result.reply if result.later is None else result.later

    async def _answer_when_ready(self, request: Any, handler: Handler, context: Context) -> Any:
        await self._broker.ready.wait()
        return await handler.function(request, context).response()

    async def _fill(self, slot: list[Any], result: Any) -> None:
        try:
            slot.append(await result)
        except HangUp:
            self._hang_up()
        else:
            self._send_ready()

    def _hang_up(self) -> None:
        self._end.close()
        self._lost()

    def _send_ready(self) -> None:
        while self._slots and self._slots[0]:
            self._end.send(self._slots.popleft()[0])

    def _lost(self) -> None:
        for task in tuple(self._tasks):
            if task is not asyncio.current_task():
                task.cancel()
