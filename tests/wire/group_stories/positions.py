"""Stories of positions that outlive their consumers, for every client."""

from pathlib import Path

from wire.group_stories.groups import Groups
from wire.group_stories.kinds import Kind
from wire.group_stories.processes import WorkerProcess, killed_in_the_end
from wire.group_stories.reading import Place
from wire.group_stories.topics import new_topic
from wire.group_stories.waiting import eventually
from wire.requests import fresh_name


def the_next_one_starts_at_the_last_commit(bootstrap: str, kind: Kind, directory: Path) -> None:
    """The first commits once, reads on to the end, and is killed."""
    group, topic = fresh_name("crash"), new_topic(bootstrap, partitions=1, records=100)
    place = Place(topic, 0)
    with killed_in_the_end([]) as workers:
        first = WorkerProcess(kind, bootstrap, group, topic, directory / "first", commits=1)
        workers.append(first)
        eventually(lambda: first.offsets(place) == list(range(100)), tell=lambda: first.diary)
        first.kill()
        at = Groups(bootstrap).committed(group)[place]
        assert 0 < at < 100

        second = WorkerProcess(kind, bootstrap, group, topic, directory / "second")
        workers.append(second)
        eventually(lambda: second.offsets(place) == list(range(at, 100)), tell=lambda: second.diary)
        second.close()
