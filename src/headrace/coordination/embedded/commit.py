"""Group commit: writes that arrive while the disk is busy share the next fsync.

Everything that depends on a change, including replies to reads, waits until the change is on
disk: no client ever sees a state that a power failure could undo. Without pending writes nothing waits.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

from headrace.coordination.embedded.journal import Journal
from headrace.coordination.embedded.state import CoordinatorState, Image
from headrace.coordination.embedded.txns import Entry, encode_entry

SNAPSHOT_AT_STOP: Final = 1_000  # entries: replaying fewer is faster than writing a snapshot

logger = logging.getLogger(__name__)


class Outlet(Protocol):
    """The output side of a connection. Neither method may call back into the commit at once."""

    def release(self, messages: list[bytes]) -> None: ...

    def hang_up(self) -> None: ...


class _Batch:
    """Entries that are being written, and the messages that wait for them."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.messages: dict[Outlet, list[bytes]] = {}
        self.goodbyes: list[Outlet] = []

    def release(self) -> None:
        for outlet, messages in self.messages.items():
            outlet.release(messages)
        for outlet in self.goodbyes:
            outlet.hang_up()


class GroupCommit:
    """Used on one event loop. `on_failure` is called once if a write fails: no message is sent afterwards."""

    def __init__(self, journal: Journal, on_failure: Callable[[BaseException], None]) -> None:
        self._journal = journal
        self._state: CoordinatorState = journal.state
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._disk = ThreadPoolExecutor(1, "coordinator-log")
        self._filling: _Batch | None = None
        self._syncing: _Batch | None = None
        self._snapshot: asyncio.Future[None] | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._failed = False
        self.batches = 0
        self.entries = 0

    def write(self, entry: Entry) -> None:
        """Make `entry` durable soon. The caller applies it to the state before anything else runs."""
        if self._failed:
            return
        if self._filling is None:
            self._filling = _Batch()
            if self._syncing is None:
                self._idle.clear()
                self._loop.call_soon(self._start)  # other writes of this loop iteration share the fsync
        self._filling.entries.append(encode_entry(entry))

    def send(self, outlet: Outlet, message: bytes) -> bool:
        """Send `message` when all earlier writes are durable; return whether it has to wait."""
        batch = self._filling or self._syncing
        if batch is None:
            if not self._failed:  # the state has changes that are not durable, and must not be seen
                outlet.release([message])
            return False
        batch.messages.setdefault(outlet, []).append(message)
        return True

    def close(self, outlet: Outlet) -> None:
        """Close the connection after everything that was sent before."""
        batch = self._filling or self._syncing
        if batch is None:
            outlet.hang_up()
        else:
            batch.goodbyes.append(outlet)

    @property
    def waiting(self) -> int:
        return sum(len(batch.entries) for batch in (self._filling, self._syncing) if batch)

    def give_up(self) -> None:
        """Stop writing and sending. A pending write may still reach the disk."""
        self._failed = True
        self._filling = None
        if self._syncing is None:
            self._idle.set()

    async def stop(self) -> None:
        """Finish pending writes; write a snapshot if a restart would otherwise take long."""
        await self._idle.wait()
        if self._snapshot is not None:
            await asyncio.wait([self._snapshot])
        if not self._failed and self._journal.entries_since_snapshot >= SNAPSHOT_AT_STOP:
            image = self._state.image()
            await self._loop.run_in_executor(self._disk, self._journal.roll, image.zxid)
            await self._loop.run_in_executor(self._disk, self._journal.write_snapshot, image)
        self._disk.shutdown()

    def _start(self) -> None:
        batch = self._filling
        if batch is None or self._syncing is not None:
            return  # an earlier call has started it
        self._filling, self._syncing = None, batch
        # All entries so far are in this batch or before it, so the state is the result of exactly these.
        is_writing = self._snapshot is not None and not self._snapshot.done()
        is_due = not is_writing and self._journal.wants_snapshot(len(self._state.tree.nodes))
        image = self._state.image() if is_due else None
        if self._journal.sync:
            written = self._loop.run_in_executor(self._disk, self._to_disk, batch.entries, image)
            written.add_done_callback(lambda done: self._written(batch, image, done.exception()))
        else:
            try:
                self._to_disk(batch.entries, image)
            except OSError as error:
                self._written(batch, image, error)
            else:
                self._written(batch, image, None)

    def _to_disk(self, entries: list[bytes], image: Image | None) -> None:
        self._journal.append(entries)
        if image is not None:
            self._journal.roll(image.zxid)

    def _written(self, batch: _Batch, image: Image | None, error: BaseException | None) -> None:
        self._syncing = None
        if error is not None or self._failed:
            self.give_up()
            if error is not None:
                self._on_failure(error)
            return
        self.batches += 1
        self.entries += len(batch.entries)
        batch.release()
        if image is not None:
            self._snapshot = asyncio.ensure_future(asyncio.to_thread(self._journal.write_snapshot, image))
            self._snapshot.add_done_callback(_report)
        if self._filling is not None:
            self._start()
        else:
            self._idle.set()


def _report(snapshot: asyncio.Future[None]) -> None:
    """Log a failed snapshot, which only makes the next start slower: the log is complete."""
    if not snapshot.cancelled() and snapshot.exception() is not None:
        logger.error("could not write a snapshot: %s", snapshot.exception())
