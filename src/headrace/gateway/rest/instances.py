"""The consumers that a gateway keeps for clients, until a client deletes them or leaves them idle.

Calls wait for brokers, so they are for threads; calls of one consumer run one at a time.
"""

import threading
import time
import uuid
from collections.abc import Callable
from typing import Final

from headrace.client.wire.connection_settings import Target, settings_for
from headrace.gateway.problems import Problem
from headrace.gateway.rest.instance import NO_INSTANCE, ConsumerOptions, Instance
from headrace.gateway.rest.tails import Slots
from headrace.system.background import BackgroundThread

MAX_INSTANCES: Final = 200  # at a time: each is a librdkafka consumer with threads of its own
IDLE_S: Final = 300.0  # without a request, after which a consumer is closed
CLOSING_S: Final = 5.0  # for which a DELETE or the gateway's shutdown waits for consumers to close
EXISTS, TOO_MANY = 40902, 42903
_SWEEP_S: Final = 1.0


class Instances:
    """The instances of one user, by group and name; those of all users share MAX_INSTANCES slots."""

    def __init__(
        self,
        target: Callable[[], Target],
        slots: Slots | None = None,
        *,
        idle_s: float = IDLE_S,
        closing_s: float = CLOSING_S,
    ) -> None:
        self._target = target
        self._slots = slots or Slots(MAX_INSTANCES)
        self._slots.join(self)
        self._idle_s = idle_s
        self._closing_s = closing_s
        self._lock = threading.Lock()
        self._instances: dict[tuple[str, str], Instance] = {}
        self._closing: dict[Instance, BackgroundThread] = {}
        self._sweeping = False
        self._exiting = threading.Event()

    def __len__(self) -> int:
        return len(self._instances)

    @property
    def taken(self) -> int:
        """The number of consumers, with those that are still closing."""
        return len(self._instances) + len(self._closing)

    def create(self, group: str, name: str | None, options: ConsumerOptions) -> str:
        """Return the name of a new consumer; raise a Problem if the name is taken, or if there are too many.

        Raise Unreachable if no broker answers; librdkafka would create a consumer that never gets a record.
        """
        connection = settings_for(self._target())
        connection.check()
        name = name or f"rest-consumer-{uuid.uuid4()}"
        with self._lock:
            if (group, name) in self._instances:
                raise Problem(EXISTS, f"group {group} already has a consumer {name}")
            if self._slots.is_full:
                raise Problem(TOO_MANY, f"{MAX_INSTANCES} consumers are open, the most at a time: delete one")
            self._instances[group, name] = Instance(connection, group, name, options)
            if not self._sweeping:
                self._sweeping = True
                BackgroundThread(self._sweep, name="gateway-consumers", stop=self._exiting.set).start()
        return name

    def get(self, group: str, name: str) -> Instance:
        with self._lock:
            found = self._instances.get((group, name))
        if found is None:
            why = (
                f"group {group} has no consumer {name} on this gateway: it was deleted, idle for "
                f"{self._idle_s:g} s, or is on another gateway; create it again (POST /consumers/{group})"
            )
            raise Problem(NO_INSTANCE, why)
        return found

    def delete(self, group: str, name: str) -> None:
        """Close the consumer, which leaves its group; if that takes long, it goes on in the background."""
        found = self.get(group, name)
        with self._lock:
            gone = self._instances.pop((group, name), None) is None
        if not gone:  # by another request
            self._close(found).join(self._closing_s)

    def interrupt(self) -> None:
        """Make waiting reads return what they have."""
        with self._lock:
            found = list(self._instances.values())
        for instance in found:
            instance.interrupt()

    def close(self) -> None:
        with self._lock:
            found, self._instances = list(self._instances.values()), {}
            closing = list(self._closing.values())
        deadline_s = time.monotonic() + self._closing_s
        for thread in [*closing, *map(self._close, found)]:
            thread.join(max(deadline_s - time.monotonic(), 0))

    def _close(self, instance: Instance) -> BackgroundThread:
        """Return a thread that closes the consumer: closing waits for brokers, for long if none answers."""

        def close() -> None:
            try:
                instance.close()
            finally:
                with self._lock:
                    self._closing.pop(instance, None)

        thread = BackgroundThread(close, name="gateway-consumer-closing", stop=None)
        with self._lock:
            self._closing[instance] = thread
        thread.start()
        return thread

    def _sweep(self) -> None:
        """Close idle consumers, until there are none at all."""
        while not self._exiting.wait(_SWEEP_S):
            idle_since = time.monotonic() - self._idle_s
            with self._lock:
                idle = [key for key, each in self._instances.items() if each.used_s < idle_since]
                closing = [self._instances.pop(key) for key in idle]
                self._sweeping = goes_on = bool(self._instances)
            for each in closing:
                self._close(each)
            if not goes_on:
                return
