"""Group commit: writes that come in while the disk is busy share the next fsync.

Whatever was computed from a change, the replies of readers included, waits here until that change is on
the disk: nobody ever sees what a power cut could take back. While nothing is being written nothing waits.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

from headrace.coordination.embedded.journal import Journal
from headrace.coordination.embedded.state import Image, State
from headrace.coordination.embedded.txns import Entry, encode_entry

SNAPSHOT_AT_STOP: Final = 1_000  # entries: fewer are replayed sooner than a snapshot is written

logger = logging.getLogger(__name__)


class Outlet(Protocol):
    """A connection, as far as its output is concerned. Neither call may lead back into here at once."""

    def release(self, messages: list[bytes]) -> None: ...

    def hang_up(self) -> None: ...


class _Batch:
    """Entries on their way to the disk, and what may be said once they are there."""

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
    """Lives on one event loop. `on_failure` is called once, if the disk refuses: nothing is told after."""

    def __init__(self, journal: Journal, on_failure: Callable[[BaseException], None]) -> None:
        self._journal = journal
        self._state: State = journal.state
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
        """Have `entry` made durable soon. The caller applies it to the state before anything else runs."""
        if self._failed:
            return
        if self._filling is None:
            self._filling = _Batch()
            if self._syncing is None:
                self._idle.clear()
                self._loop.call_soon(self._start)  # what else this turn of the loop brings shares the fsync
        self._filling.entries.append(encode_entry(entry))

    def send(self, outlet: Outlet, message: bytes) -> bool:
        """Let `message` go once all that was written so far is durable; return whether it has to wait."""
        batch = self._filling or self._syncing
        if batch is None:
            if not self._failed:  # what the disk refused was applied all the same, and must not be seen
                outlet.release([message])
            return False
        if outlet in batch.messages:
            batch.messages[outlet].append(message)
        else:
            batch.messages[outlet] = [message]
        return True

    def close(self, outlet: Outlet) -> None:
        """Hang up after everything that was sent before."""
        batch = self._filling or self._syncing
        if batch is None:
            outlet.hang_up()
        else:
            batch.goodbyes.append(outlet)

    @property
    def waiting(self) -> int:
        """Entries not yet durable."""
        return sum(len(batch.entries) for batch in (self._filling, self._syncing) if batch)

    def give_up(self) -> None:
        """Write and say nothing more. What is on its way to the disk may still arrive there."""
        self._failed = True
        self._filling = None
        if self._syncing is None:
            self._idle.set()

    async def stop(self) -> None:
        """Finish what is under way; leave a snapshot if a restart would otherwise take a while."""
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
            return  # another turn has taken it already
        self._filling, self._syncing = None, batch
        # All entries so far are in this batch or before it, so the state is what they add up to.
        image = self._state.image() if self._snapshot_is_due() else None
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

    def _snapshot_is_due(self) -> bool:
        running = self._snapshot is not None and not self._snapshot.done()
        return not running and self._journal.wants_snapshot(len(self._state.tree.nodes))


def _report(snapshot: asyncio.Future[None]) -> None:
    """A snapshot that failed costs nothing but time at the next start: the log has it all."""
    if not snapshot.cancelled() and snapshot.exception() is not None:
        logger.error("no snapshot: %s", snapshot.exception())
