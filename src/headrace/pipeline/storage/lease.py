"""A lock on shared storage, which its holder has to renew: nobody can ask whether a process elsewhere lives.

The lock is one file. Its holder rewrites it every few seconds. Another process takes the lock over after it
has seen no change for a whole lease, by its own clock, so the clocks of machines do not have to agree. Every
write names the version that it replaces, so of two processes only one succeeds.
"""

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from headrace.pipeline.errors import PipelineError
from headrace.pipeline.storage.object_store import ObjectStore
from headrace.system.background import BackgroundThread

LEASE_S: Final = 30.0
_RENEWALS: Final = 3  # per lease
_POLL_S: Final = 1.0  # while waiting for another process's lease to end


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The process that holds a lock. `machine` is the same for processes that see each other's ids."""

    token: str
    pid: int
    host: str
    machine: str
    renewals: int = 0

    @classmethod
    def decode(cls, content: bytes) -> "Holder":
        return cls(**json.loads(content))

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    def is_gone(self) -> bool:
        """Return whether the process has certainly ended, which only processes of its machine can tell."""
        if self.machine != _machine():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False


class Lease:
    """The lock at `key`, held by this process or not. `what` names the locked thing in messages."""

    def __init__(
        self,
        store: ObjectStore,
        key: str,
        what: str,
        *,
        lease_s: float = LEASE_S,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store = store
        self._key = key
        self._what = what
        self._lease_s = lease_s
        self._clock = clock
        self._wait = wait
        token, host = secrets.token_hex(8), socket.gethostname()
        self._holder = Holder(token=token, pid=os.getpid(), host=host, machine=_machine())
        self._version = ""
        self._renewed_at = 0.0
        self._is_lost = False

    @property
    def is_lost(self) -> bool:
        """Whether another process may have taken the lock over, also while a renewal hangs."""
        return self._is_lost or self._clock() - self._renewed_at > self._lease_s

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock, and renew it in a thread; PipelineError if another process holds it."""
        self.acquire()
        ended = threading.Event()

        def renew_until_the_end() -> None:
            while not self.is_lost and not ended.wait(self._lease_s / _RENEWALS):
                self.renew()

        thread = BackgroundThread(renew_until_the_end, name="pipeline-lease", stop=ended.set)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            self.release()

    def acquire(self) -> None:
        """Take the lock, if need be after the lease of a process that has ended without releasing it."""
        while True:
            self._renewed_at = self._clock()
            version = self._store.create(self._key, self._holder.encode())
            if version is None:
                version = self._take_over()
            if version is not None:
                self._version, self._is_lost = version, False
                return

    def _take_over(self) -> str | None:
        """Return our version if the holder is gone; None if the lock is free, or was just taken.

        A holder that may be alive is watched for a whole lease; PipelineError if it renews the lease.
        """
        seen = self._store.read(self._key)
        if seen is None:
            return None
        holder = Holder.decode(seen.content)
        end = self._clock() + (0 if holder.is_gone() else self._lease_s)
        while self._clock() < end:
            self._wait(min(_POLL_S, self._lease_s / 10))
            now = self._store.read(self._key)
            if now is None:  # released: whoever is first gets it
                break
            if now.version != seen.version:
                raise PipelineError(
                    f"{self._what} is running already, as process {holder.pid} on {holder.host}: "
                    "`headrace pipeline stop` ends it"
                )
        self._renewed_at = self._clock()
        return self._store.replace(self._key, self._holder.encode(), seen.version)

    def renew(self) -> None:
        """Renew the lease. It is lost if another process has taken it over, or might have by now."""
        began = self._clock()
        holder = replace(self._holder, renewals=self._holder.renewals + 1)
        try:
            version = self._store.replace(self._key, holder.encode(), self._version)
        except PipelineError:  # the storage is not available; the lease is lost if that lasts
            return
        if version is None:
            # If the lock has this very renewal, the answer was lost, and the client's retry was refused.
            found = self._store.read(self._key)
            if found is None or Holder.decode(found.content) != holder:
                self._is_lost = True
                return
            version, began = found.version, self._clock()
        self._holder, self._version, self._renewed_at = holder, version, began

    def release(self) -> None:
        """Delete the lock, if it is still ours."""
        found = None if self.is_lost else self._store.read(self._key)
        if found is not None and found.version == self._version:
            self._store.delete(self._key)

    def owner(self) -> tuple[int, str] | None:
        """Return the process that holds the lock and its host, by its last renewal: only for people.

        The time of the renewal is the storage's, and compared with this machine's clock.
        """
        found = self._store.read(self._key)
        if found is None:
            return None
        holder = Holder.decode(found.content)
        age_s = (datetime.now(UTC) - found.modified).total_seconds()
        return None if holder.is_gone() or age_s > 2 * self._lease_s else (holder.pid, holder.host)


def _machine() -> str:
    """Return an id of the process table that this process sees: another container has another one."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    table = Path("/proc/self/ns/pid")
    if not boot.exists():
        return socket.gethostname()
    return f"{boot.read_text().strip()} {table.readlink()}"
