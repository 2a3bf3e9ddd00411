"""The checked workload: writers, a group of readers and an onlooker, all with one ledger."""

from typing import Final

from cluster.cluster import Cluster
from cluster.consumers import CLASSIC, Reader
from cluster.ledger import Ledger
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

    def __init__(self, cluster: Cluster, group_protocol: str) -> None:
        self._cluster = cluster
        self.ledger = Ledger()
        bootstrap = cluster.bootstrap
        self._writers = [Writer(f"w{each}", bootstrap, TOPIC, self.ledger) for each in range(WRITERS)]
        group = {"group_protocol": "consumer"} if group_protocol == "consumer" else CLASSIC
        self._readers = [
            Reader(f"r{number}", bootstrap, TOPIC, GROUP, self.ledger, client_rack=rack, **group)
            for number, rack in enumerate(RACKS)
        ]
        self._onlooker = Onlooker(bootstrap.split(","), TOPIC, GROUP, self.ledger)
        self._threads: list[Writer | Reader | Onlooker] = [*self._writers, *self._readers, self._onlooker]

    def start(self) -> None:
        for each in self._threads:
            each.start()
        self.progress()
        until("the group has committed something", self.ledger.committed)

    def progress(self) -> None:
        """Return when every partition has taken more records, and the group has read and committed more."""
        ledger = self.ledger
        before, read = ledger.counts(), len(ledger.processed)
        committed = sum(ledger.committed().values())

        def moved() -> bool:
            assert not ledger.problems, ledger.problems
            now = ledger.counts()
            return all(now[each] >= before[each] + PROGRESS for each in range(PARTITIONS))

        until(f"records go to every partition again (before: {before})", moved)
        until("the group reads again", lambda: len(ledger.processed) > read + PROGRESS)
        until("the group commits again", lambda: sum(ledger.committed().values()) > committed)

    def finish(self) -> None:
        """Write no more, have the group read everything and commit it, and stop."""
        for writer in self._writers:
            writer.stop()
        acknowledged = {slot for slot, _ in self.ledger.acknowledged}
        try:
            until("the group has read it all", lambda: acknowledged <= self.ledger.processed.keys())
        except NotInTime as error:  # the checks tell what it is that it has not read
            self.ledger.problems.append(str(error))
        for each in self._threads:
            each.stop()
        self._onlooker.look()

    def abandon(self) -> None:
        """Stop the threads, whatever they were at."""
        for each in self._threads:
            each.stop()
