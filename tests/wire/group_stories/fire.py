"""The story of a group under fire: workers are killed, closed and started, and so is the broker."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from wire.group_stories.diary import Entry
from wire.group_stories.groups import Groups
from wire.group_stories.kinds import Kind
from wire.group_stories.load import Load
from wire.group_stories.observer import Observer
from wire.group_stories.processes import WorkerProcess, killed_in_the_end
from wire.group_stories.reading import Place
from wire.group_stories.topics import new_topic
from wire.group_stories.waiting import eventually
from wire.process import BrokerProcess
from wire.requests import fresh_name

PARTITIONS: Final = 6
MOST_WORKERS: Final = 4
PROGRESS: Final = 300  # records that must be read for the first time between two steps
PATIENCE_S: Final = 60


class Crew:
    """The workers of a story, those who are gone included."""

    def __init__(self, bootstrap: str, topic: str, kinds: Sequence[Kind], directory: Path) -> None:
        self.group = fresh_name("fire")
        self.everybody: list[WorkerProcess] = []
        self.present: list[WorkerProcess] = []
        self._bootstrap, self._topic, self._kinds, self._directory = bootstrap, topic, kinds, directory

    def start(self) -> None:
        """One more, of the next kind in turn."""
        number = len(self.everybody)
        kind = self._kinds[number % len(self._kinds)]
        path = self._directory / f"{number}-{kind.client}"
        worker = WorkerProcess(kind, self._bootstrap, self.group, self._topic, path)
        self.everybody.append(worker)
        self.present.append(worker)

    def seen(self) -> dict[Place, dict[int, str]]:
        """Every record that somebody read."""
        found: dict[Place, dict[int, str]] = {}
        for worker in self.everybody:
            for place, offset, text in worker.records():
                found.setdefault(place, {})[offset] = text
        return found

    def wait_for_progress(self) -> None:
        """Return once some more records have been read that nobody had read before."""
        goal = self._count() + PROGRESS
        eventually(lambda: self._count() >= goal, timeout_s=PATIENCE_S, pause_s=0.2, tell=self._diaries)

    def _count(self) -> int:
        for worker in self.present:
            worker.must_run()
        return sum(map(len, self.seen().values()))

    def _diaries(self) -> dict[str, list[Entry]]:
        return {worker.name: worker.diary[-10:] for worker in self.present}


def nothing_is_lost_under_fire(
    broker: BrokerProcess, kinds: Sequence[Kind], directory: Path, seed: int, steps: int
) -> None:
    topic = new_topic(broker.bootstrap, partitions=PARTITIONS)
    crew = Crew(broker.bootstrap, topic, kinds, directory)
    with killed_in_the_end(crew.everybody), Observer(broker.bootstrap, crew.group) as observer:
        with Load(broker.bootstrap, topic, PARTITIONS) as load:
            for _ in range(MOST_WORKERS):
                crew.start()
            _disturb(crew, broker, random.Random(seed), steps)
        groups = Groups(broker.bootstrap)
        eventually(
            lambda: groups.committed(crew.group) == load.ends(),
            timeout_s=PATIENCE_S,
            tell=lambda: (load.ends(), groups.committed(crew.group), [each.owned for each in crew.present]),
        )
        for worker in crew.present:
            worker.close()

    assert crew.seen() == load.acknowledged
    assert observer.steps_back == []
    assert observer.looks > steps
    for worker in crew.everybody:
        must_be_in_order(worker)


def _disturb(crew: Crew, broker: BrokerProcess, chance: random.Random, steps: int) -> None:
    """Each step waits until work has gone on, so that every one hits a group that lives."""
    for step in range(steps):
        crew.wait_for_progress()
        if step == steps // 2:
            broker.kill()
            broker.start()
        elif len(crew.present) < 2 or (len(crew.present) < MOST_WORKERS and chance.random() < 0.5):
            crew.start()
        else:
            worker = crew.present.pop(chance.randrange(len(crew.present)))
            chance.choice([worker.kill, worker.close])()


def must_be_in_order(worker: WorkerProcess) -> None:
    """What a worker reads of a partition, from one assignment to the next, has neither gap nor repetition.

    aiokafka may hand out a last batch just after its callback for what it gives up: that has to fit as well.
    """
    latest: dict[Place, int | None] = {}
    for number, entry in enumerate(worker.diary):
        for place in entry.places:
            if entry.what == "assigned":
                latest[place] = None
            elif entry.what == "read":
                where = f"{worker.name}, entry {number}: {place}, offset {entry.offset}"
                assert place in latest, f"{where}, which it never owned"
                assert latest[place] in {None, entry.offset - 1}, f"{where} after {latest[place]}"
                latest[place] = entry.offset
