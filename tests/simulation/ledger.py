"""What has been promised of one partition, and whether it is kept.

A record is promised once it is below anybody's high watermark: readers may have seen it, and whoever wrote it
with acks=all has been told. From then on it stands at its offset in the log of every later leader, and below
every high watermark, for good. Two things excuse a loss, and nothing else does:

- a leader that was elected uncleanly, where the topic allows that: what it does not have;
- power cuts, once every replica of those in sync or eligible (ELR) that had the record has lost power since.
  With min.insync.replicas=2 that takes two machines (KIP-966); a single one never excuses anything.

Killed processes, however many, excuse nothing: what they wrote their machines keep. Nor do power cuts excuse
the loss of a record that a majority of the replicas still has on disk when a leader begins.
"""

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from simulation.log import Batch, SimLog
from simulation.world import Violation


class Place(NamedTuple):
    """One life of one broker."""

    broker_id: int
    life: int


class Ledger:
    """The promises of one partition."""

    def __init__(
        self,
        name: str,
        brokers: Collection[int],
        log_of: Callable[[int], SimLog | None],
        min_insync_replicas: int,
        replicas: Callable[[], Collection[int]],
    ) -> None:
        self.name = name
        self.committed: list[Batch] = []  # by offset
        self.leaders: dict[int, Place] = {}  # by epoch
        self.unclean: set[int] = set()  # epochs
        self.suspects: dict[int, int] = {}  # brokers that lost power, at which zxid; not in sync since
        self.stale: dict[int, int] = {}  # brokers that still have what was lost, and from where
        self.eligible: Collection[int] = ()  # in sync or eligible (ELR), as it is written
        self._brokers = brokers
        self._log_of = log_of
        self._min_insync_replicas = min_insync_replicas
        self._replicas = replicas
        self._offsets: dict[int, int] = {}  # of values that are committed
        self._lost: set[int] = set()  # values whose loss was excused
        self._at_risk = range(0)  # offsets whose loss would be excused

    # -- promises ------------------------------------------------------------------------------

    def check_committed(self, who: str, log: SimLog, offsets: Iterable[int]) -> None:
        """These offsets are below the high watermark of `who`: they must be what they were."""
        for offset in offsets:
            batch = log.at(offset)
            if batch is None:
                raise self._wrong(f"{who} counts {offset} as committed and does not have it")
            if offset == len(self.committed):
                self._promise(who, batch, log)
            elif offset > len(self.committed):
                raise self._wrong(f"{who} counts {offset} as committed, and {len(self.committed)} is not")
            elif self.committed[offset] != batch:
                raise self._wrong(f"{who} has {batch} below its high watermark; {self.committed[offset]} was")

    def _promise(self, who: str, batch: Batch, log: SimLog) -> None:
        earlier = self._offsets.get(batch.value)
        # As in Kafka, a replica that began after an earlier copy was deleted does not know of that copy.
        if earlier is not None and earlier >= log.log_start_offset:
            raise self._wrong(f"{who} commits {batch}, which is at {earlier} already")
        newest = max(self.leaders, default=None)
        if newest is not None and not self._has(self.leaders[newest].broker_id, batch):
            raise self._wrong(f"{who} commits {batch}, which the leader of epoch {newest} does not have")
        self._offsets[batch.value] = batch.base_offset
        self.committed.append(batch)
        self._check_eligible(len(self.committed) - 1)

    def _has(self, broker_id: int, batch: Batch) -> bool:
        """Whether a leader has a batch, or has had it before it deleted it or lost power."""
        log = self._log_of(broker_id)
        if broker_id in self.suspects:
            return True
        return log is not None and (
            batch.base_offset < log.log_start_offset or log.at(batch.base_offset) == batch
        )

    def check_acknowledged(self, value: int, offset: int) -> None:
        """A producer has been told that `value` is at `offset`, in all that are in sync."""
        if value not in self._lost and self._offsets.get(value) != offset:
            where = self._offsets.get(value, "nowhere")
            raise self._wrong(f"value {value} is acknowledged at {offset} and committed at {where}")

    def check_read(self, who: str, batch: Batch) -> None:
        """Somebody has read `batch`."""
        if batch.value not in self._lost and self._offsets.get(batch.value) != batch.base_offset:
            raise self._wrong(f"{who} gets {batch}, which is not committed")

    # -- leaders -------------------------------------------------------------------------------

    def leads(self, epoch: int, place: Place, log: SimLog) -> None:
        """A broker takes writes as the leader of `epoch`."""
        known = self.leaders.get(epoch)
        if known == place:
            return
        if known is not None:
            raise self._wrong(f"epoch {epoch} has two leaders, {known} and {place}")
        self.leaders[epoch] = place
        if epoch != max(self.leaders):
            return  # it is late: another leads in a newer epoch already, and was looked at
        self._check_leader(epoch, place, log)
        self.suspects.pop(place.broker_id, None)
        self.stale.pop(place.broker_id, None)

    def _check_leader(self, epoch: int, place: Place, log: SimLog) -> None:
        offset = self._agrees_up_to(log)
        if offset == len(self.committed):
            return
        if epoch not in self.unclean and offset not in self._at_risk:
            raise self._wrong(
                f"broker {place.broker_id} leads in epoch {epoch} without {self.committed[offset]}, "
                f"which is committed; its log ends at {log.log_end_offset}"
            )
        if not self.unclean:
            self._check_minority(epoch, place, self.committed[offset])
        for batch in self.committed[offset:]:
            self._lost.add(batch.value)
            del self._offsets[batch.value]
        del self.committed[offset:]
        self._at_risk = range(self._at_risk.start, min(self._at_risk.stop, offset))
        for other in self._brokers:
            kept = self._log_of(other)
            if other != place.broker_id and kept is not None and kept.log_end_offset > offset:
                self.stale[other] = min(offset, self.stale.get(other, offset))

    def _check_minority(self, epoch: int, place: Place, lost: Batch) -> None:
        """A record that power cuts may excuse is lost: a majority of the replicas must not have it."""
        replicas = self._replicas()
        logs = {each: self._log_of(each) for each in replicas}
        holders = [each for each, log in logs.items() if log is not None and log.at(lost.base_offset) == lost]
        if 2 * len(holders) > len(replicas):
            raise self._wrong(
                f"broker {place.broker_id} leads in epoch {epoch} without {lost}, which is on the disks of "
                f"brokers {holders}"
            )

    @property
    def has_lost(self) -> bool:
        """Whether something committed was lost, with an excuse."""
        return bool(self._lost)

    @property
    def awaits_unclean_leader(self) -> bool:
        """Whether one that was elected uncleanly has not led yet: who is in sync with it lacks the same."""
        return max(self.unclean, default=-1) > max(self.leaders, default=-1)

    def may_lead(self, eligible: Collection[int], compared: int | None = None) -> None:
        """It is written that these are in sync or eligible: whatever is committed, each of them has it.

        `compared` leads after a comparison of logs: what it has is safe, even if it has lost power.
        """
        self.eligible = eligible
        if self.suspects:
            self._assess_risk(compared)
        self._check_eligible(0)

    def _check_eligible(self, first: int) -> None:
        for each in self.eligible:
            if each in self.suspects or self.unclean:
                continue
            log = self._log_of(each)
            offset = first if log is None else self._agrees_up_to(log, first)
            if offset < len(self.committed) and offset not in self._at_risk:
                raise self._wrong(f"broker {each} may lead and does not have {self.committed[offset]}")

    def _agrees_up_to(self, log: SimLog, first: int = 0) -> int:
        """The first offset at which a log lacks what is committed."""
        for offset in range(max(first, log.log_start_offset), len(self.committed)):
            if log.at(offset) != self.committed[offset]:
                return offset
        return len(self.committed)

    # -- power cuts ----------------------------------------------------------------------------

    def power_cut(self, broker_id: int, zxid: int) -> None:
        """A machine has gone down uncleanly; whatever registers there later has a later zxid."""
        self.suspects[broker_id] = zxid
        self._assess_risk()

    def _assess_risk(self, compared: int | None = None) -> None:
        """One of those that may lead and have not lost power must have all that is committed."""
        suspects = self.suspects.keys() - {compared}
        logs = [self._log_of(each) for each in self.eligible if each not in suspects]
        safe = max((self._agrees_up_to(log) for log in logs if log is not None), default=0)
        if safe == len(self.committed):
            return
        if len(self.suspects) < self._min_insync_replicas and not self.unclean:
            raise self._wrong(
                f"nobody has {self.committed[safe]} any more that may lead, although only brokers "
                f"{list(self.suspects)} have lost power"
            )
        start = min(safe, self._at_risk.start) if self._at_risk else safe
        self._at_risk = range(start, len(self.committed))

    def _wrong(self, what: str) -> Violation:
        return Violation(f"{self.name}: {what}")
