"""The checked workload: writers, a group of readers and an onlooker, all with one ledger."""

from typing import Final

from cluster.cluster import Cluster
from cluster.consumers import CLASSIC, Reader
from cluster.ledger import Ledger, Slot
from cluster.onlooker import Onlooker
from cluster.producers import Writer
from cluster.waiting import NotInTime, until

TOPIC: Final = "checked"
GROUP: Final = "readers"
PARTITIONS: Final = 6
WRITERS: Final = 2
RACKS: Final = ("rack-1", "")  # of the readers: one reads from followers in its rack, one from leaders
PROGRESS: Final = 20  # records of each partition


class Workload:
    """Runs from `start` to `finish`; a story does its worst in between."""

    def __init__(self, cluster: Cluster, group_protocol: str, *other_protocols: str) -> None:
        """Every other protocol gets a group of its own, with a ledger of what it reads and commits."""
        self._cluster = cluster
        self.ledger = Ledger()
        self.other_groups = [Ledger() for _ in other_protocols]
        bootstrap = cluster.bootstrap
        self._writers = [Writer(f"w{each}", bootstrap, TOPIC, self.ledger) for each in range(WRITERS)]
        self._readers = _readers(bootstrap, GROUP, group_protocol, self.ledger)
        for number, protocol in enumerate(other_protocols):
            self._readers += _readers(bootstrap, f"{GROUP}-{number}", protocol, self.other_groups[number])
        self._onlooker = Onlooker(bootstrap.split(","), TOPIC, GROUP, self.ledger)
        self._threads: list[Writer | Reader | Onlooker] = [*self._writers, *self._readers, self._onlooker]

    def start(self) -> None:
        for each in self._threads:
            each.start()
        self.progress()
        until("the group has committed something", self.ledger.committed)

    def progress(self) -> None:
        """Return when every partition has taken more records, and the group has read and committed more."""
        ledger, groups = self.ledger, [self.ledger, *self.other_groups]
        before = ledger.counts()
        read = [len(group.processed) for group in groups]
        committed = [sum(group.committed().values()) for group in groups]

        def moved() -> bool:
            for group in groups:
                assert not group.problems, group.problems
            now = ledger.counts()
            return all(now[each] >= before[each] + PROGRESS for each in range(PARTITIONS))

        until(f"records go to every partition again (before: {before})", moved)
        for group, count, offsets in zip(groups, read, committed, strict=True):
            _await_reading(group, count, offsets)

    def finish(self) -> None:
        """Write no more, have the group read everything and commit it, and stop."""
        for writer in self._writers:
            writer.stop()
        acknowledged = {slot for slot, _ in self.ledger.acknowledged}
        for group in (self.ledger, *self.other_groups):
            _await_all(group, acknowledged)
        for each in self._threads:
            each.stop()
        self._onlooker.look()

    def abandon(self) -> None:
        """Stop the threads, whatever they were at."""
        for each in self._threads:
            each.stop()


def _readers(bootstrap: str, group: str, protocol: str, ledger: Ledger) -> list[Reader]:
    options = {"group_protocol": "consumer"} if protocol == "consumer" else CLASSIC
    return [
        Reader(f"r{number}", bootstrap, TOPIC, group, ledger, client_rack=rack, **options)
        for number, rack in enumerate(RACKS)
    ]


def _await_reading(group: Ledger, count: int, offsets: int) -> None:
    """Return when a group has read and committed more than that."""
    until("the group reads again", lambda: len(group.processed) > count + PROGRESS)
    until("the group commits again", lambda: sum(group.committed().values()) > offsets)


def _await_all(group: Ledger, acknowledged: set[Slot]) -> None:
    try:
        until("the group has read it all", lambda: acknowledged <= group.processed.keys())
    except NotInTime as error:  # the checks tell what it is that it has not read
        group.problems.append(str(error))
