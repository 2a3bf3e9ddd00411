"""Consumers that the gateway keeps for clients: members of their groups until deleted, or idle for long.

Calls wait for brokers, so they are made in threads; one at a time on each instance.
"""

import threading
import time
import uuid
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from headrace.background import BackgroundThread
from headrace.client.errors import check_reachable
from headrace.http.gateway.instance import NO_INSTANCE, Instance, Wanted
from headrace.http.problems import Problem

MOST: Final = 200  # instances at a time: each has a consumer with threads of its own
IDLE_S: Final = 300.0  # after which one that nobody asks for anything is closed
CLOSING_S: Final = 5.0  # for which a request, or the end of the gateway, waits for consumers to close
EXISTS, TOO_MANY = 40902, 42903
_SWEEP_S: Final = 1.0


class Instances:
    """The instances of a gateway, by group and name; at most `MOST`."""

    def __init__(
        self, bootstrap: Callable[[], str], *, idle_s: float = IDLE_S, closing_s: float = CLOSING_S
    ) -> None:
        self._bootstrap = bootstrap
        self._idle_s = idle_s
        self._closing_s = closing_s
        self._lock = threading.Lock()
        self._there: dict[tuple[str, str], Instance] = {}
        self._closing: dict[Instance, BackgroundThread] = {}
        self._sweeping = False
        self._exiting = threading.Event()

    def __len__(self) -> int:
        return len(self._there)

    def create(self, group: str, name: str | None, wanted: Wanted) -> str:
        """The name of a new instance; a Problem if it is there, or if there are too many.

        Unreachable if no broker answers: a consumer would just not get anything.
        """
        bootstrap = self._bootstrap()
        check_reachable(bootstrap)
        name = name or f"rest-consumer-{uuid.uuid4()}"
        with self._lock:
            if (group, name) in self._there:
                said = f"group {group} has a consumer {name} already"
                raise Problem(HTTPStatus.CONFLICT, EXISTS, said)
            if len(self._there) + len(self._closing) >= MOST:
                said = f"{MOST} consumers are open, which is as many as there may be: delete one"
                raise Problem(HTTPStatus.TOO_MANY_REQUESTS, TOO_MANY, said)
            self._there[group, name] = Instance(bootstrap, group, name, wanted)
            if not self._sweeping:
                self._sweeping = True
                BackgroundThread(self._sweep, name="gateway-consumers", stop=self._exiting.set).start()
        return name

    def get(self, group: str, name: str) -> Instance:
        with self._lock:
            found = self._there.get((group, name))
        if found is None:
            said = (
                f"group {group} has no consumer {name} here: it was deleted, not used for {self._idle_s:g} s,"
                f" or is another gateway's; make it again (POST /consumers/{group})"
            )
            raise Problem(HTTPStatus.NOT_FOUND, NO_INSTANCE, said)
        return found

    def delete(self, group: str, name: str) -> None:
        """Have it leave its group: at once if brokers answer, behind our back if that takes longer."""
        found = self.get(group, name)
        with self._lock:
            gone = self._there.pop((group, name), None) is None
        if not gone:  # or somebody else has been quicker
            self._close(found).join(self._closing_s)

    def interrupt(self) -> None:
        """Have reads that wait for records answer with what they have."""
        with self._lock:
            found = list(self._there.values())
        for each in found:
            each.interrupt()

    def close(self) -> None:
        with self._lock:
            found, self._there = list(self._there.values()), {}
            closing = list(self._closing.values())
        deadline_s = time.monotonic() + self._closing_s
        for thread in [*closing, *map(self._close, found)]:
            thread.join(max(deadline_s - time.monotonic(), 0))

    def _close(self, instance: Instance) -> BackgroundThread:
        """A thread that closes it: that waits for brokers, for long if there are none."""
        thread = BackgroundThread(
            self._run_closing, args=(instance,), name="gateway-consumer-closing", stop=None
        )
        with self._lock:
            self._closing[instance] = thread
        thread.start()
        return thread

    def _run_closing(self, instance: Instance) -> None:
        try:
            instance.close()
        finally:
            with self._lock:
                self._closing.pop(instance, None)

    def _sweep(self) -> None:
        """Close what is idle, for as long as there is anything."""
        while not self._exiting.wait(_SWEEP_S):
            idle_since = time.monotonic() - self._idle_s
            with self._lock:
                idle = [key for key, each in self._there.items() if each.used_s < idle_since]
                closing = [self._there.pop(key) for key in idle]
                self._sweeping = bool(self._there)
                over = not self._sweeping
            for each in closing:
                self._close(each)
            if over:
                return
