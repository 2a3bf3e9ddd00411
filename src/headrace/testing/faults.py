"""What a test has go wrong between clients and the brokers of its own process.

    with broker.faults.fail("Fetch", error="NOT_LEADER_OR_FOLLOWER", times=3) as fault:
        ...
        fault.wait()

A fault lasts until its `times` are used up, its `with` block ends, or it is cleared. It is for clients: the
brokers' requests to one another, and those of the fixture itself, pass unless `client_id` names them.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, Unpack

from headrace.broker.dispatch import HANDLERS, Context, Handler, load_handlers
from headrace.protocol.api import request_class
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.fetch import FetchResponse
from headrace.testing import acting
from headrace.testing.api_names import api_key, api_name, error_code
from headrace.testing.fault import Fault, Hit, Narrowed
from headrace.testing.named_topics import names_topics
from headrace.testing.questions import Question
from headrace.testing.refusals import OF_A_SESSION

if TYPE_CHECKING:
    from headrace.testing.embedded import EmbeddedBroker

__all__ = ["Fault", "Faults", "Hit"]


class OnLoop(Protocol):
    """Calls a function where the brokers live."""

    def __call__(self, function: Callable[..., Any], /, *args: Any) -> Any: ...


class Faults:
    """The faults of a broker, or of all brokers of a cluster."""

    def __init__(self, brokers: Callable[[], Iterable["EmbeddedBroker"]], on_loop: OnLoop) -> None:
        self.hits: list[Hit] = []  # everything that any fault has met, in order
        self._brokers = brokers
        self._on_loop = on_loop
        self._lock = threading.Lock()
        # Read on the loop, for every request, without the lock: so they are replaced and never changed.
        self._requests: tuple[tuple[int, Fault, acting.Act], ...] = ()
        self._connections: tuple[Fault, ...] = ()

    # -- what may go wrong ---------------------------------------------------------------------

    def fail(
        self, api: str, *, error: str | ErrorCode, times: int | None = None, **narrowed: Unpack[Narrowed]
    ) -> Fault:
        """Have requests answered with an error, and nothing done. With `topic`, others are served."""
        key, code = api_key(api), error_code(error)
        what = f"fail {api_name(key)} with {code.name}"
        return self._add(
            key, acting.fail(code), what, times=times, fails=code not in OF_A_SESSION, **narrowed
        )

    def delay(
        self, api: str, *, seconds: float, times: int | None = None, **narrowed: Unpack[Narrowed]
    ) -> Fault:
        """Have what is asked for done at once, and the answer held back for so long."""
        if seconds < 0:
            raise ValueError(f"seconds={seconds}: an answer cannot come before its question")
        key = api_key(api)
        what = f"delay {api_name(key)} by {seconds:g} s"
        return self._add(key, acting.delay(seconds), what, times=times, **narrowed)

    def hang_up(
        self,
        api: str,
        *,
        after: Literal["before", "append"] = "before",
        times: int | None = 1,
        **narrowed: Unpack[Narrowed],
    ) -> Fault:
        """Have the connection closed instead of an answer: before anything is done, or when all of it is.

        `after="append"` is the lost acknowledgement: it is in the log, and the client cannot know.
        """
        key = api_key(api)
        if after not in {"before", "append"}:
            raise ValueError(f"after={after!r}: expected 'append', or 'before' for nothing done")
        act = acting.hang_up_before if after == "before" else acting.hang_up_after
        what = f"hang up on {api_name(key)} {'before' if after == 'before' else 'after'} it is done"
        return self._add(key, act, what, times=times, **narrowed)

    def refuse_connections(self, *, broker_id: int | None = None) -> Fault:
        """Have the broker gone, as clients see it: those connected are cut off, and nobody gets in.

        Whoever is connected and is no client, stays.
        """
        fault = Fault("refuse connections", broker_id=broker_id, on_clear=self._remove)
        with self._lock:
            self._connections = (*self._connections, fault)
        self.drop_connections(broker_id=broker_id)
        return fault

    def drop_connections(self, client_id: str | None = None, *, broker_id: int | None = None) -> int:
        """Cut off everybody, or one client, here and now; return how many connections that were."""
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
        """Let all go well again."""
        with self._lock:
            self._requests, self._connections = (), ()

    # -- where it does -------------------------------------------------------------------------

    def handlers(self) -> Mapping[int, Handler]:
        """The table of handlers with these faults before each of them."""
        load_handlers()
        return {
            # The handler's own wish to be asked at the controller is fulfilled behind the faults.
            key: handler._replace(function=partial(self._asked, handler), on_controller=False)
            for key, handler in HANDLERS.items()
        }

    def refuses(self, broker_id: int) -> bool:
        """Whether a broker is to let nobody in; whoever asks has somebody at the door."""
        for fault in self._connections:
            if fault.is_for(None, broker_id):
                self.hits.append(fault.hit(None, broker_id))
                return True
        return False

    def _asked(self, handler: Handler, request: Any, context: Context) -> Any:
        question = Question(request, context, handler)
        for key, fault, act in self._requests:
            if key != handler.key or not fault.is_for(context.client_id, context.broker.broker_id):
                continue
            if question.leaves_topics_out and fault.needs_topics:  # have it named in a new session
                return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=())
            topics = question.topics()
            if fault.topic is None or fault.topic in topics:
                self.hits.append(fault.hit(context.client_id, context.broker.broker_id, topics))
                return act(question, fault.topic)
        return question.served()

    def _add(
        self,
        key: int,
        act: acting.Act,
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
            self._requests = tuple(each for each in self._requests if each[1] is not fault)
            self._connections = tuple(each for each in self._connections if each is not fault)
