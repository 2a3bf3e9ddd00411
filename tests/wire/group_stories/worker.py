"""A member of a group as a program of its own, for those that get killed.

python -m wire.group_stories.worker JSON

Reads and commits until SIGTERM, or until its test is gone; then it closes its client well. What happens
stands in its diary before anything else is done about it, so that SIGKILL takes nothing back.
"""

import json
import os
import signal
import sys
from collections.abc import Collection
from typing import Any, Final

from wire.group_stories.diary import Entry
from wire.group_stories.kinds import Kind
from wire.group_stories.reading import CommitFailed, Place

POLL_S: Final = 0.1
READS_PER_COMMIT: Final = 20


class Worker:
    """What one worker does; its reader tells it what it owns."""

    def __init__(self, orders: dict[str, Any]) -> None:
        self._stopping = False
        self._test = orders["test"]
        self._uncommitted = 0
        self._commits_left = orders["commits"]
        signal.signal(signal.SIGTERM, self._stop)
        # Its being there tells that SIGTERM will be heeded.
        self._diary = os.open(orders["diary"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        kind = Kind(orders["client"], orders["options"])
        self._reader = kind.open(orders["bootstrap"], orders["group"], orders["topics"], self)

    def run(self) -> None:
        while not self._stopping and os.getppid() == self._test:
            reads = self._reader.poll(POLL_S)
            for read in reads:
                self._note(Entry("read", [read.place], read.offset, read.value.decode()))
            self._uncommitted += len(reads)
            if self._uncommitted >= READS_PER_COMMIT or not reads:
                self._commit()
        self._commit()
        self._reader.close()
        self._note(Entry("closed"))

    def assigned(self, places: Collection[Place]) -> None:
        self._note(Entry("assigned", list(places)))

    def revoked(self, places: Collection[Place]) -> None:
        self._note(Entry("revoked", list(places)))

    def _commit(self) -> None:
        if not self._uncommitted or not self._commits_left:
            return
        try:
            self._reader.commit()
        except CommitFailed as failure:
            self._note(Entry("refused", text=str(failure)))
        else:
            self._note(Entry("committed"))
            self._uncommitted = 0
            self._commits_left -= 1

    def _note(self, entry: Entry) -> None:
        os.write(self._diary, entry.to_line())

    def _stop(self, _signal: int, _frame: object) -> None:
        self._stopping = True


if __name__ == "__main__":
    Worker(json.loads(sys.argv[1])).run()
