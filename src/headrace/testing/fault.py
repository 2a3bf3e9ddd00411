"""One thing that goes wrong: for whom, how often, and whom it has met."""

import re
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypedDict, Unpack

OWN_CLIENT_ID: Final = "headrace-testing"
WAIT_S: Final = 10.0
_BROKERS: Final = re.compile(r"broker-\d+")


class Hit(NamedTuple):
    """A request, or a connection, that a fault has met."""

    fault: str
    api: str
    client_id: str | None
    broker_id: int
    topics: tuple[str, ...]
    time_s: float


class Narrowed(TypedDict, total=False):
    """Whom a fault is for, if not for everybody."""

    topic: str | None  # requests that name it; what they say of others is not touched
    client_id: str | None
    broker_id: int | None  # of a cluster's


def is_client(client_id: str | None) -> bool:
    """Whether somebody of this name is none of the brokers, nor the fixture itself."""
    return client_id != OWN_CLIENT_ID and not _BROKERS.fullmatch(client_id or "")


class Fault:
    """A fault in force. Leaving its `with` block, or `clear`, ends it."""

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
            raise ValueError(
                f"times={times}: a fault happens once, several times, or (None) until it is cleared"
            )
        self.what = what
        self.api = api
        self.topic = narrowed.get("topic")
        self.needs_topics = fails or self.topic is not None
        self.hits: list[Hit] = []
        self._times = times
        self._client_id = narrowed.get("client_id")
        self._broker_id = narrowed.get("broker_id")
        self._on_clear = on_clear
        self._changed = threading.Condition()

    def __repr__(self) -> str:
        """What it does and how often it has: for a test's report."""
        narrowed = {"topic": self.topic, "client_id": self._client_id, "broker_id": self._broker_id}
        options = "".join(f", {name}={value!r}" for name, value in narrowed.items() if value is not None)
        return f"<{self.what}{options}: {len(self.hits)} hits>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def clear(self) -> None:
        """Let all go well again; fine if it does."""
        self._on_clear(self)

    def wait(self, hits: int = 1, timeout_s: float = WAIT_S) -> None:
        """Return once it has met so many; TimeoutError if that takes too long."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.hits) >= hits, timeout_s):
                raise TimeoutError(f"{self!r}: waited {timeout_s:g} s for {hits}")

    def is_for(self, client_id: str | None, broker_id: int) -> bool:
        if self._broker_id not in {None, broker_id}:
            return False
        return is_client(client_id) if self._client_id is None else client_id == self._client_id

    def hit(self, client_id: str | None, broker_id: int, topics: Any = ()) -> Hit:
        """Note that it has met somebody; the last time clears it."""
        met = Hit(self.what, self.api, client_id, broker_id, tuple(topics), time.time())
        with self._changed:
            self.hits.append(met)
            self._changed.notify_all()
        if self._times is not None and len(self.hits) >= self._times:
            self.clear()
        return met
