"""Somebody who keeps looking at a group's committed offsets, and remembers each step back."""

import threading
from types import TracebackType
from typing import Final, Self

from confluent_kafka import KafkaException

from wire.group_stories.groups import Groups
from wire.group_stories.reading import Place

PAUSE_S: Final = 0.05


class Observer:
    """Looks until the block is left; a broker that is away is asked again."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self.looks = 0
        self.steps_back: list[str] = []
        self._groups = Groups(bootstrap)
        self._group = group
        self._latest: dict[Place, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(PAUSE_S):
            try:
                found = self._groups.committed(self._group)
            except (KafkaException, TimeoutError):
                continue  # the story kills the broker
            self.looks += 1
            for place, before in self._latest.items():
                now = found.get(place)
                if now is None or now < before:
                    self.steps_back.append(f"{place}: {before}, then {now}")
            self._latest.update(found)
