"""Faults between clients and the brokers of this process, and between transaction coordinators and leaders.

    with broker.faults.fail("Fetch", error="NOT_LEADER_OR_FOLLOWER", times=3) as fault:
        ...
        fault.wait()

A fault lasts until it has happened `times` times, its `with` block ends, or it is cleared. It is for clients:
requests of other brokers, and of the fixture itself, are not affected unless `client_id` names them. Only
faults of WriteTxnMarkers are for brokers: they meet a transaction coordinator that sends markers, even if it
leads the partitions itself.
"""

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self, TypedDict, Unpack

from headrace.broker.coordinators.transaction_verification import AskBroker
from headrace.broker.requests.dispatch import HANDLERS, Context, Handler, HangUp, load_handlers
from headrace.broker.results import Result
from headrace.protocol.api import api_schema, request_class
from headrace.protocol.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.peers import PeerGone
from headrace.protocol.schema.fetch import FetchResponse
from headrace.protocol.schema.index import ApiKey
from headrace.testing import interception
from headrace.testing.interception import Intercepted
from headrace.testing.refusals import OF_A_SESSION, names_topics

if TYPE_CHECKING:
    from headrace.testing.nodes import EmbeddedBroker

OWN_CLIENT_ID: Final = "headrace-testing"
WAIT_S: Final = 10.0
_BROKERS: Final = re.compile(r"broker-\d+")

After = Literal["before", "append"]
"""When a fault happens: before a request is served, or after what it appends is in the log."""


def api_key(name: str) -> ApiKey:
    """Return the API "OffsetCommit" or "offset_commit"; ValueError if the broker has no such API."""
    load_handlers()
    known = {api_name(key): ApiKey(key) for key in HANDLERS if key in set(ApiKey)}
    by_letters = {_letters(each): key for each, key in known.items()}
    found = by_letters.get(_letters(name))
    if found is None:
        raise ValueError(f"there is no API {name!r}: {_suggestion(name, known)}")
    return found


def api_name(key: int) -> str:
    return api_schema(key).name


def error_code(error: str | ErrorCode) -> ErrorCode:
    """Return the error "NOT_LEADER_OR_FOLLOWER"; ValueError if Kafka has no such error."""
    known = ErrorCode.__members__
    found = error if isinstance(error, ErrorCode) else known.get(error.upper())
    if found is None:
        raise ValueError(f"there is no error {error!r}: {_suggestion(str(error).upper(), known)}")
    if found is ErrorCode.NONE:
        raise ValueError("NONE is not an error: name the error that clients shall get")
    return found


def _letters(name: str) -> str:
    return name.replace("_", "").lower()


def _suggestion(name: str, known: Iterable[str]) -> str:
    by_letters = {_letters(each): each for each in known}
    near = [by_letters[each] for each in get_close_matches(_letters(name), by_letters, n=4, cutoff=0.5)]
    return f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(known))}"


class Hit(NamedTuple):
    """A request, or a connection, that a fault has affected."""

    fault: str
    api: str
    client_id: str | None
    broker_id: int
    topics: tuple[str, ...]
    time_s: float


class Narrowed(TypedDict, total=False):
    """The clients, topics and brokers that a fault is limited to."""

    topic: str | None  # requests that name it; other topics in the same request are not affected
    client_id: str | None
    broker_id: int | None  # of a cluster


def _moment(after: After) -> str:
    """Return the word for `after` in the description of a fault; ValueError if it is unknown."""
    if after not in {"before", "append"}:
        raise ValueError(f"after={after!r}: expected 'append', or 'before' to serve nothing")
    return "before" if after == "before" else "after"


def is_client(client_id: str | None) -> bool:
    """Return whether a client id belongs neither to a broker nor to the fixture."""
    return client_id != OWN_CLIENT_ID and not _BROKERS.fullmatch(client_id or "")


class Fault:
    """An active fault. The end of its `with` block, or `clear`, ends it."""

    def __init__(
        self,
        what: str,
        *,
        api: str = "",
        times: int | None = None,
        fails: bool = False,
        on_clear: Callable[["Fault"], None],
        **narrowed: Unpack[Narrowed],
    ) -> None:
        if times is not None and times < 1:
            raise ValueError(f"times={times}: expected a positive number, or None for a fault until `clear`")
        self.what = what
        self.api = api
        self.topic = narrowed.get("topic")
        self.needs_topics = fails or self.topic is not None
        self.hits: list[Hit] = []
        self._left = times
        self._client_id = narrowed.get("client_id")
        self._broker_id = narrowed.get("broker_id")
        self._on_clear = on_clear
        self._changed = threading.Condition()

    def __repr__(self) -> str:
        """Return what the fault does, and how often it has happened."""
        narrowed = {"topic": self.topic, "client_id": self._client_id, "broker_id": self._broker_id}
        options = "".join(f", {name}={value!r}" for name, value in narrowed.items() if value is not None)
        return f"<{self.what}{options}: {len(self.hits)} hits>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.clear()

    def clear(self) -> None:
        """End the fault; do nothing if it has ended."""
        self._on_clear(self)

    def wait(self, hits: int = 1, timeout_s: float = WAIT_S) -> None:
        """Return once the fault has happened `hits` times; TimeoutError if that takes too long."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.hits) >= hits, timeout_s):
                raise TimeoutError(f"{self!r}: waited {timeout_s:g} s for {hits}")

    def is_for(self, client_id: str | None, broker_id: int, *, from_coordinator: bool = False) -> bool:
        if self._broker_id not in {None, broker_id}:
            return False
        if self._client_id is None:
            return from_coordinator or is_client(client_id)
        return client_id == self._client_id

    def take(self) -> None:
        """Use one of `times` up; the last one ends the fault."""
        if self._left is not None:
            self._left -= 1
            if self._left == 0:
                self.clear()

    def hit(self, client_id: str | None, broker_id: int, topics: Iterable[str] = ()) -> Hit:
        """Record that the fault has happened."""
        hit = Hit(self.what, self.api, client_id, broker_id, tuple(topics), time.time())
        with self._changed:
            self.hits.append(hit)
            self._changed.notify_all()
        return hit


class Faults:
    """The faults of a broker, or of all brokers of a cluster."""

    def __init__(
        self,
        brokers: Callable[[], Iterable["EmbeddedBroker"]],
        on_loop: Callable[..., Any],
        kill_soon: Callable[..., None],
    ) -> None:
        """`on_loop` calls a function on the brokers' event loop; `kill_soon` begins to kill a broker."""
        self.hits: list[Hit] = []  # the hits of all faults, in order
        self._brokers = brokers
        self._on_loop = on_loop
        self._kill_soon = kill_soon
        self._lock = threading.Lock()
        # The loop reads them for every request without the lock: so they are replaced and never changed.
        self._requests: tuple[tuple[int, Fault, interception.Act], ...] = ()
        self._connections: tuple[Fault, ...] = ()

    def fail(
        self, api: str, *, error: str | ErrorCode, times: int | None = None, **narrowed: Unpack[Narrowed]
    ) -> Fault:
        """Refuse requests with an error. With `topic`, other topics in the same request are served."""
        key, code = api_key(api), error_code(error)
        what = f"fail {api_name(key)} with {code.name}"
        fails = code not in OF_A_SESSION
        return self._add(key, interception.fail(code), what, times=times, fails=fails, **narrowed)

    def delay(
        self, api: str, *, seconds: float, times: int | None = None, **narrowed: Unpack[Narrowed]
    ) -> Fault:
        """Serve requests at once, and send the response `seconds` later."""
        if seconds < 0:
            raise ValueError(f"seconds={seconds}: expected a delay that is not negative")
        key = api_key(api)
        what = f"delay {api_name(key)} by {seconds:g} s"
        return self._add(key, interception.delay(seconds), what, times=times, **narrowed)

    def hang_up(
        self, api: str, *, after: After = "before", times: int | None = 1, **narrowed: Unpack[Narrowed]
    ) -> Fault:
        """Close the connection instead of a response, before the request is served or after it.

        `after="append"` is the lost acknowledgement: the records are in the log, and the client cannot know.
        """
        key, moment = api_key(api), _moment(after)
        act = interception.hang_up_before if after == "before" else interception.hang_up_after
        what = f"hang up on {api_name(key)} {moment} it is served"
        return self._add(key, act, what, times=times, **narrowed)

    def kill_broker(
        self, api: str, *, after: After = "before", restart: bool = False, **narrowed: Unpack[Narrowed]
    ) -> Fault:
        """Kill the broker that gets the next such request, before the request is served or after it.

        With `restart`, the broker starts again at once, with the same port and data. WriteTxnMarkers kills
        the transaction coordinator that sends the markers.
        """
        key, moment = api_key(api), _moment(after)
        act = interception.kill(partial(self._kill_soon, restart=restart), after=after == "append")
        what = f"kill the broker {moment} it has served {api_name(key)}"
        return self._add(key, act, what, times=1, **narrowed)

    def refuse_connections(self, *, broker_id: int | None = None) -> Fault:
        """Close the connections of clients, and refuse new ones, as if the broker was gone.

        Connections of other brokers stay open.
        """
        fault = Fault("refuse connections", broker_id=broker_id, on_clear=self._remove)
        with self._lock:
            self._connections = (*self._connections, fault)
        self.drop_connections(broker_id=broker_id)
        return fault

    def drop_connections(self, client_id: str | None = None, *, broker_id: int | None = None) -> int:
        """Close the connections of all clients, or of one; return how many connections that were."""
        dropping = Fault(
            "drop connections", client_id=client_id, broker_id=broker_id, on_clear=lambda _fault: None
        )

        def drop() -> int:
            for broker in self._brokers():
                for connection in broker.connections.all():
                    if dropping.is_for(connection.client_id, broker.broker_id):
                        self.hits.append(dropping.hit(connection.client_id, broker.broker_id))
                        connection.abort()
            return len(dropping.hits)

        dropped: int = self._on_loop(drop)
        return dropped

    def clear(self) -> None:
        """End all faults."""
        with self._lock:
            self._requests, self._connections = (), ()

    def handlers(self) -> Mapping[int, Handler]:
        """Return the table of handlers, each behind these faults."""
        load_handlers()
        return {
            # Requests for the controller are forwarded behind the faults.
            key: handler._replace(function=partial(self._intercept, handler), on_controller=False)
            for key, handler in HANDLERS.items()
        }

    def refuses(self, broker_id: int) -> bool:
        """Return whether a broker has to refuse a connection, and record the hit."""
        for fault in self._connections:
            if fault.is_for(None, broker_id):
                self.hits.append(fault.hit(None, broker_id))
                return True
        return False

    async def send_markers(
        self,
        broker: "EmbeddedBroker",
        ask: AskBroker,
        broker_id: int,
        request: Message,
        versions: range,
        *,
        timeout_s: float,
    ) -> Any:
        """Send the markers of a transaction coordinator behind these faults; PeerGone if one hangs up."""
        handler = HANDLERS[ApiKey.WRITE_TXN_MARKERS]._replace(
            function=lambda request, _: Result(later=ask(broker_id, request, versions, timeout_s=timeout_s))
        )
        listener = broker.config.listener(broker.config.inter_broker_listener)
        context = Context(broker, listener, f"broker-{broker.broker_id}", versions[-1])
        try:
            return await self._intercept(handler, request, context, from_coordinator=True).response()
        except HangUp as lost:
            raise PeerGone(str(lost)) from lost

    def _intercept(
        self, handler: Handler, request: Any, context: Context, *, from_coordinator: bool = False
    ) -> Result:
        intercepted = Intercepted(request, context, handler)
        client_id, broker_id = context.client_id, context.broker.broker_id
        is_sent_marker = handler.key == ApiKey.WRITE_TXN_MARKERS and not is_client(client_id)
        if is_sent_marker and not from_coordinator:
            return intercepted.served()  # its coordinator has sent it through the faults
        for key, fault, act in self._requests:
            if key != handler.key or not fault.is_for(
                client_id, broker_id, from_coordinator=from_coordinator
            ):
                continue
            if intercepted.leaves_topics_out and fault.needs_topics:  # a new fetch session names all topics
                return Result(FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=()))
            topics = intercepted.topics()
            if fault.topic is None or fault.topic in topics:
                fault.take()

                def happened(fault: Fault = fault, topics: Iterable[str] = topics) -> None:
                    self.hits.append(fault.hit(client_id, broker_id, topics))

                return act(intercepted, fault.topic, happened)
        return intercepted.served()

    def _add(
        self,
        key: int,
        act: interception.Act,
        what: str,
        *,
        times: int | None = None,
        fails: bool = False,
        **narrowed: Unpack[Narrowed],
    ) -> Fault:
        topic = narrowed.get("topic")
        if topic is not None and not names_topics(request_class(key)):
            raise ValueError(f"topic={topic!r}: a request of {api_name(key)} names no topics")
        fault = Fault(what, api=api_name(key), times=times, fails=fails, on_clear=self._remove, **narrowed)
        with self._lock:
            self._requests = (*self._requests, (key, fault, act))
        return fault

    def _remove(self, fault: Fault) -> None:
        with self._lock:
            self._requests = tuple(request for request in self._requests if request[1] is not fault)
            self._connections = tuple(each for each in self._connections if each is not fault)
