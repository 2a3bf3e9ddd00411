"""Who leads a partition: the rules by which the controller changes a partition's state. Pure.

    eligible     in the set that was in sync last, or in the eligible set that left it while too few were
                 in sync (KIP-966): such a replica has everything that is committed
    live         registered, and not known to be gone

The live eligible replica with the most records leads. If none is live, nobody leads until one returns, or,
where the topic says that data may be lost, the best of the rest does.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

NOBODY = -1


class Progress(NamedTuple):
    """How far a replica's log goes: the epoch of its last record, and its end."""

    last_epoch: int
    log_end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition as the controller knows it: what is written down, and what its topic wants."""

    replicas: tuple[int, ...]  # the preferred leader first
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()  # eligible leaders that are not in sync
    last_leader: int = NOBODY  # who led last, while nobody does
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    min_insync_replicas: int = 1
    unclean_allowed: bool = False
    version: int = 0  # how often it was written: Kafka's partition epoch
    is_written: bool = True  # like this; if not, it has to be before anybody is told

    @property
    def wanted_in_sync(self) -> int:
        return min(self.min_insync_replicas, len(self.replicas))


Rank = Callable[[int], Progress | None]
"""How far a broker's replica is, where that is known."""


def elect(
    partition: Partition, live: Collection[int], *, rank: Rank | None = None, avoid: Collection[int] = ()
) -> Partition:
    """The partition with a live leader, if there can be one; unchanged if its leader can stay.

    `avoid` are brokers that are about to leave: they do not get to lead, and are not in sync if others are.
    """
    if partition.leader in live and partition.leader not in avoid:
        return partition
    isr = tuple(each for each in partition.isr if each in live and each not in avoid)
    eligible = isr or tuple(each for each in partition.elr if each in live and each not in avoid)
    if eligible:
        return _lead(partition, _best(eligible, partition.replicas, rank), isr)
    if partition.leader in live:
        return partition  # it is to leave, and nobody can take over: it stays as long as it can
    if partition.unclean_allowed:
        rest = tuple(each for each in partition.replicas if each in live and each not in avoid)
        if rest:
            leader = _best(rest, partition.replicas, rank)
            changed = _lead(partition, leader, ())
            return replace(changed, elr=())
    if partition.leader == NOBODY:
        return partition
    # The last in sync stays on record: it is the one to wait for.
    return replace(
        partition,
        leader=NOBODY,
        leader_epoch=partition.leader_epoch + 1,
        last_leader=partition.leader,
    )


def _lead(partition: Partition, leader: int, isr: Sequence[int]) -> Partition:
    in_sync = tuple(isr) if leader in isr else (leader,)
    return _with_isr(
        replace(partition, leader=leader, leader_epoch=partition.leader_epoch + 1, last_leader=NOBODY),
        in_sync,
    )


def _best(candidates: Sequence[int], replicas: Sequence[int], rank: Rank | None) -> int:
    """The candidate with the most records; among equals, the one that is preferred."""

    def order(broker_id: int) -> tuple[Progress, int]:
        progress = (rank(broker_id) if rank is not None else None) or Progress(-1, -1)
        place = replicas.index(broker_id) if broker_id in replicas else len(replicas)
        return progress, -place

    return max(candidates, key=order)


def _with_isr(partition: Partition, isr: Sequence[int]) -> Partition:
    """The partition with another set in sync; who leaves it while too few are left stays eligible."""
    if set(isr) == set(partition.isr):
        return replace(partition, isr=tuple(isr))
    elr: tuple[int, ...] = ()
    if len(isr) < partition.wanted_in_sync:
        were = dict.fromkeys((*partition.isr, *partition.elr))
        elr = tuple(each for each in were if each not in isr and each in partition.replicas)
    return replace(partition, isr=tuple(isr), elr=elr)


def accept_isr(partition: Partition, isr: Sequence[int]) -> Partition:
    """The leader's proposal, in the order of the replicas."""
    ordered = tuple(each for each in partition.replicas if each in isr)
    return _with_isr(partition, ordered)


def without_dead(partition: Partition, live: Collection[int]) -> Partition:
    """A partition whose leader lives, without those in sync that do not; the leader always stays."""
    if partition.leader not in live:
        return partition
    isr = tuple(each for each in partition.isr if each in live)
    return _with_isr(partition, isr) if isr else partition


def without_leaver(partition: Partition, broker_id: int) -> Partition:
    """A broker is about to leave: it follows no more, if others are in sync."""
    if partition.leader == broker_id or broker_id not in partition.isr or len(partition.isr) == 1:
        return partition
    return _with_isr(partition, tuple(each for each in partition.isr if each != broker_id))


def distrust(partition: Partition, broker_id: int) -> Partition:
    """A broker is back after a crash that may have cost it records: it is not eligible any more.

    If nobody else is, it stays so: it is still the best there is.
    """
    elr = tuple(each for each in partition.elr if each != broker_id)
    isr = tuple(each for each in partition.isr if each != broker_id)
    return replace(partition, isr=isr, elr=elr) if isr or elr else partition


def forget_eligible(partition: Partition) -> Partition:
    """Enough are in sync, also because fewer are wanted than before: nobody else is eligible."""
    enough = len(partition.isr) >= partition.wanted_in_sync
    return replace(partition, elr=()) if partition.elr and enough else partition


def prefer(partition: Partition, live: Collection[int]) -> Partition:
    """The partition led by its preferred replica, if that lives and is in sync."""
    preferred = partition.replicas[0]
    if partition.leader == preferred or preferred not in live or preferred not in partition.isr:
        return partition
    return replace(partition, leader=preferred, leader_epoch=partition.leader_epoch + 1, last_leader=NOBODY)


def begin_move(partition: Partition, target: Sequence[int]) -> Partition:
    """The partition on its way to other replicas: those it has stay until all the new ones are in sync.

    That goes for those, too, that an earlier move has brought and this one does not want: they may be the
    only ones that are in sync. They are both being added and being removed, and go in any case.
    """
    original = tuple(each for each in partition.replicas if each not in partition.adding)
    removing = tuple(each for each in partition.replicas if each not in target)
    adding = tuple(each for each in (*target, *removing) if each not in original)
    return replace(partition, replicas=(*target, *removing), adding=adding, removing=removing)


def cancel_move(partition: Partition) -> Partition:
    """The partition where it was before it began to move; only those it had there may lead it."""
    original = tuple(each for each in partition.replicas if each not in partition.adding)
    isr = tuple(each for each in partition.isr if each in original)
    elr = tuple(each for each in partition.elr if each in original)
    changed = _on_fewer(replace(partition, adding=(), removing=(), elr=elr), original)
    return _with_isr(changed, isr) if isr else replace(changed, isr=())


def finish_move(partition: Partition, live: Collection[int], rank: Rank | None = None) -> Partition:
    """The partition on its new replicas alone, if they all are in sync; unchanged otherwise."""
    target = tuple(each for each in partition.replicas if each not in partition.removing)
    moving = bool(partition.adding or partition.removing)
    if not moving or not set(target) <= set(partition.isr):
        return partition
    isr = tuple(each for each in partition.isr if each in target)
    moved = _on_fewer(replace(partition, adding=(), removing=(), isr=isr, elr=()), target)
    if moved.leader in target:
        return moved
    return elect(replace(moved, leader=NOBODY, last_leader=moved.leader), live, rank=rank)


def _on_fewer(partition: Partition, replicas: tuple[int, ...]) -> Partition:
    """The partition on these of its replicas, led in a new epoch if others go.

    They drop their logs. One that comes back soon, empty, must not pass for what it was: in the old epoch a
    leader that has not heard of it in between would still count on the log that it had.
    """
    goes = not set(partition.replicas) <= set(replicas)
    epoch = partition.leader_epoch + (goes and partition.leader in replicas)
    return replace(partition, replicas=replicas, leader_epoch=epoch)
