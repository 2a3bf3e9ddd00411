"""Members of a group as threads of the test: many of them, told apart by name."""

import threading
from collections.abc import Callable, Collection
from typing import Final

from wire.group_stories.ledger import Ledger
from wire.group_stories.reading import CommitFailed, Place, Read, Reader, Watcher

POLL_S: Final = 0.05
CLOSE_TIMEOUT_S: Final = 20


class Member:
    """A reader in a thread of its own, that tells the ledger, keeps what it read, and commits it.

    A commit that comes amid a rebalance is refused; then the next one has its turn, or the next owner.
    """

    def __init__(self, name: str, open_reader: Callable[[Watcher], Reader], ledger: Ledger) -> None:
        self.name = name
        self.reads: list[Read] = []
        self.refused: list[str] = []
        self.error: Exception | None = None
        self._open_reader = open_reader
        self._ledger = ledger
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def owned(self) -> frozenset[Place]:
        return self._ledger.owned_by(self.name)

    def stop(self) -> None:
        """Have it close, without waiting for that."""
        self._stop.set()

    def close(self) -> None:
        """Close it as a program that ends well does; raise what went wrong in it."""
        self.stop()
        self._thread.join(CLOSE_TIMEOUT_S)
        assert not self._thread.is_alive(), f"{self.name} does not close"
        if self.error is not None:
            raise self.error

    def assigned(self, places: Collection[Place]) -> None:
        self._ledger.assigned(self.name, places)

    def revoked(self, places: Collection[Place]) -> None:
        self._ledger.revoked(self.name, places)

    def _run(self) -> None:
        try:
            reader = self._open_reader(self)
            try:
                while not self._stop.is_set():
                    reads = reader.poll(POLL_S)
                    self.reads += reads
                    if reads:
                        self._commit(reader)
            finally:
                reader.close()
        except Exception as error:  # noqa: BLE001  the test's thread raises it
            self.error = error

    def _commit(self, reader: Reader) -> None:
        try:
            reader.commit()
        except CommitFailed as failure:
            self.refused.append(str(failure))
