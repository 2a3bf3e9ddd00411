"""What is known of pipelines: their progress, read on from where the last look ended.

Every look takes in what is new in the topic; what is remembered is bounded, and forgotten if the topic is
another one.
"""

from collections import deque
from threading import Lock
from typing import Final

from headrace.client.errors import NoSuchTopic
from headrace.client.following import Follower
from headrace.client.records import Record, Start
from headrace.pipeline.progress import TOPIC, Progress
from headrace.pipeline.standing import TAIL

STEP_S: Final = 0.2
READ: Final = 50_000  # records that one look takes in


class Pipelines:
    """For all pages and threads together."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._lock = Lock()
        self._known: deque[Progress] = deque(maxlen=TAIL)
        self._positions: dict[int, int] = {}

    def progress(self) -> list[Progress]:
        """All that is remembered, oldest first; nothing if no pipeline has run on the cluster."""
        with self._lock:
            try:
                self._read_on()
            except NoSuchTopic:
                self._forget()
            return list(self._known)

    def _read_on(self) -> None:
        with Follower(self._bootstrap, TOPIC, Start(last=TAIL), positions=self._positions) as follower:
            if any(offset > follower.ends.get(index, 0) for index, offset in self._positions.items()):
                self._forget()  # it has been made anew; the next look begins at its beginning
                return
            taken = 0
            while not follower.at_end and taken < READ:
                records = follower.step(STEP_S)
                taken += len(records)
                for record in records:
                    self._take(record)
            self._positions = dict(follower.positions)

    def _take(self, record: Record) -> None:
        try:
            self._known.append(Progress.decode(record.value or b""))
        except (ValueError, TypeError):  # it is somebody else's, or a later version's
            return

    def _forget(self) -> None:
        self._known.clear()
        self._positions.clear()
