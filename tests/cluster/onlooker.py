"""Somebody who asks, twice a second, what a group has committed: it never goes back."""

import threading
from collections.abc import Sequence
from typing import Final

from cluster.asking import NoAnswer, committed_offsets
from cluster.ledger import Ledger

EVERY_S: Final = 0.5


class Onlooker:
    """A thread; it finds the coordinator anew for every question."""

    def __init__(self, bootstraps: Sequence[str], topic: str, group: str, ledger: Ledger) -> None:
        self._bootstraps = bootstraps
        self._topic, self._group = topic, group
        self._ledger = ledger
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="onlooker")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(EVERY_S):
            try:
                self.look()
            except NoAnswer:
                self._ledger.refuse("look")
            except Exception as error:  # noqa: BLE001  a thread that dies must not go unnoticed
                self._ledger.problems.append(f"the onlooker gave up: {error!r}")
                return

    def look(self) -> None:
        """What the group has committed is no less than it was told it has."""
        floor = self._ledger.committed()
        found = committed_offsets(self._bootstraps, self._group, self._topic)
        for partition in floor:
            self._ledger.saw_committed(partition, found.get(partition, -1), floor, "an onlooker")
