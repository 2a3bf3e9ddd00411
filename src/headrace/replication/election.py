"""Leader election and reassignment: the rules by which the controller changes a partition's state. Pure.

A replica is *eligible* if it is in the ISR, or in the ELR: the replicas that left the ISR while it was
smaller than `min.insync.replicas` (KIP-966). An eligible replica has every committed record. A replica is
*live* if its broker is registered.

The live eligible replica with the longest log is elected. If no eligible replica is live, the partition has
no leader until one returns; or, if the topic allows unclean elections, the live replica with the longest log
leads.

An eligible replica that returns after a crash and may have lost records is *in doubt*: it is not elected
while another eligible replica is not in doubt, live or not. If all of them are in doubt, as after a power cut
of all machines, the log ends of all replicas are compared, and the longest log leads: a record that a
majority of the replicas has on disk survives. Replicas that are not back yet are waited for, up to a limit.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from headrace.protocol.ids import LeaderEpoch, Offset

NO_LEADER: Final = -1


class Progress(NamedTuple):
    """The end of a replica's log: the leader epoch of its last record, and its log end offset."""

    last_epoch: LeaderEpoch
    log_end_offset: Offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition's state in ZooKeeper, and the settings of its topic that elections depend on."""

    replicas: tuple[int, ...]  # the preferred leader first
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()  # eligible leader replicas that are not in the ISR
    last_leader: int = NO_LEADER  # while there is no leader
    in_doubt: tuple[int, ...] = ()  # eligible replicas that may have lost records, while there is no leader
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    min_insync_replicas: int = 1
    unclean_allowed: bool = False
    version: int = 0  # of the znode: Kafka's partition epoch
    is_written: bool = True  # False: this state has to be written before brokers may learn of it

    @property
    def wanted_in_sync(self) -> int:
        return min(self.min_insync_replicas, len(self.replicas))


TRANSITION_RULES: Final[Mapping[str, Callable[[Partition, Partition], bool]]] = {
    "the leader epoch never decreases": lambda before, after: after.leader_epoch >= before.leader_epoch,
    "a new leader has a new leader epoch": lambda before, after: (
        after.leader in {NO_LEADER, before.leader} or after.leader_epoch > before.leader_epoch
    ),
    "the leader is a replica": lambda _, after: after.leader in {NO_LEADER, *after.replicas},
    "the ISR and the ELR consist of replicas": lambda _, after: {*after.isr, *after.elr} <= {*after.replicas},
    "no replica is both in the ISR and in the ELR": lambda _, after: {*after.isr}.isdisjoint(after.elr),
    "no replica is in doubt while there is a leader": lambda _, after: (
        after.leader == NO_LEADER or not after.in_doubt
    ),
}
"""What holds for every change of a partition's state that the controller writes."""


def check_transition(before: Partition, after: Partition) -> None:
    """Assert that the controller may replace the state `before` by `after`."""
    for rule, holds in TRANSITION_RULES.items():
        assert holds(before, after), (rule, before, after)


Rank = Callable[[int], Progress | None]
"""Returns the end of a broker's log, or None if it is unknown."""


def elect(
    partition: Partition,
    live: Collection[int],
    *,
    rank: Rank | None = None,
    avoid: Collection[int] = (),
    waited: bool = False,
) -> Partition:
    """Return the partition with a live leader if possible, unchanged if its leader can stay.

    `avoid` are brokers that are shutting down: they are not elected, and leave the ISR if others are in it.
    `waited`: if the live replicas are in doubt, the others have had enough time to return.
    """
    if partition.leader in live and partition.leader not in avoid:
        return partition
    isr, elr, rest = (
        tuple(broker for broker in brokers if broker in live and broker not in avoid)
        for brokers in (partition.isr, partition.elr, partition.replicas)
    )
    if partition.in_doubt:
        isr, elr = (
            tuple(broker for broker in brokers if broker not in partition.in_doubt) for brokers in (isr, elr)
        )
    if isr or elr:
        return _lead(partition, _best(isr or elr, partition.replicas, rank), isr)
    if partition.leader in live:
        return partition  # it is shutting down, but no other replica can lead: it leads as long as it can
    if rest and (partition.unclean_allowed or (partition.in_doubt and len(partition.replicas) == 1)):
        return replace(_lead(partition, _best(rest, partition.replicas, rank), ()), elr=())
    compared = tuple(each for each in rest if rank is not None and rank(each) is not None)
    if partition.in_doubt and _are_enough(compared, partition, waited=waited):
        return replace(_lead(partition, _best(compared, partition.replicas, rank), ()), elr=())
    if partition.leader == NO_LEADER:
        return partition
    # The last ISR stays in the state: these are the replicas to wait for.
    return replace(
        partition, leader=NO_LEADER, leader_epoch=partition.leader_epoch + 1, last_leader=partition.leader
    )


def _are_enough(compared: Sequence[int], partition: Partition, *, waited: bool) -> bool:
    """Return whether the longest log of the replicas `compared` may lead, with eligible replicas in doubt.

    A majority of the replicas has every record that a majority has on disk. An eligible replica that is not
    known to have lost records may have all of them: then the majority itself has to be eligible and in doubt.
    """
    if set(partition.replicas) <= set(compared):
        return True
    eligible = {*partition.isr, *partition.elr}
    all_in_doubt = eligible <= set(partition.in_doubt)
    voters = [each for each in compared if all_in_doubt or each in partition.in_doubt]
    return waited and (
        (all_in_doubt and eligible <= set(compared)) or 2 * len(voters) > len(partition.replicas)
    )


def _lead(partition: Partition, leader: int, isr: Sequence[int]) -> Partition:
    in_sync = tuple(isr) if leader in isr else (leader,)
    epoch = partition.leader_epoch + 1
    elected = replace(partition, leader=leader, leader_epoch=epoch, last_leader=NO_LEADER, in_doubt=())
    if partition.in_doubt:  # these replicas follow; they are eligible again when they have caught up
        elected = replace(elected, elr=tuple(each for each in elected.elr if each not in partition.in_doubt))
        elected = replace(elected, isr=tuple(each for each in elected.isr if each not in partition.in_doubt))
    return _with_isr(elected, in_sync)


def _best(candidates: Sequence[int], replicas: Sequence[int], rank: Rank | None) -> int:
    """Return the candidate with the longest log; among equals, the first in the order of the replicas."""

    def order(broker_id: int) -> tuple[tuple[int, int], int]:
        progress = rank(broker_id) if rank is not None else None
        place = replicas.index(broker_id) if broker_id in replicas else len(replicas)
        return progress or (-1, -1), -place

    return max(candidates, key=order)


def _with_isr(partition: Partition, isr: Sequence[int]) -> Partition:
    """Return the partition with another ISR; a replica that leaves an ISR that is too small joins the ELR."""
    if isr == partition.isr:
        return partition  # most partitions, whenever all are compared
    if set(isr) == set(partition.isr):
        return replace(partition, isr=tuple(isr))
    elr: tuple[int, ...] = ()
    if len(isr) < partition.wanted_in_sync:
        were = dict.fromkeys((*partition.isr, *partition.elr))
        elr = tuple(each for each in were if each not in isr and each in partition.replicas)
    return replace(partition, isr=tuple(isr), elr=elr)


def accept_isr(partition: Partition, isr: Sequence[int]) -> Partition:
    """Return the partition with the ISR that its leader proposes, in the order of the replicas."""
    ordered = tuple(replica for replica in partition.replicas if replica in isr)
    return _with_isr(partition, ordered)


def shrink_isr_to_live(partition: Partition, live: Collection[int]) -> Partition:
    """Return the partition without dead replicas in its ISR, if its leader is live."""
    if partition.leader not in live:
        return partition
    isr = tuple(each for each in partition.isr if each in live)
    return _with_isr(partition, isr) if isr else partition


def shrink_isr_without(partition: Partition, broker_id: int) -> Partition:
    """Return the partition without a follower that is shutting down in its ISR, if others are in it."""
    if partition.leader == broker_id or broker_id not in partition.isr or len(partition.isr) == 1:
        return partition
    return _with_isr(partition, tuple(each for each in partition.isr if each != broker_id))


def distrust(partition: Partition, broker_id: int, live: Collection[int]) -> Partition:
    """Return the partition with a broker that may have lost records: not eligible, or in doubt.

    If another broker leads, the broker is removed from ISR and ELR: it follows. Without a leader it stays
    there, in doubt: its log may be the best one left.
    """
    if broker_id not in partition.isr and broker_id not in partition.elr:
        return partition
    if partition.leader in live and partition.leader != broker_id:
        elr = tuple(each for each in partition.elr if each != broker_id)
        isr = tuple(each for each in partition.isr if each != broker_id)
        return replace(partition, isr=isr, elr=elr)
    if broker_id in partition.in_doubt:
        return partition
    return replace(partition, in_doubt=(*partition.in_doubt, broker_id))


def clear_elr(partition: Partition) -> Partition:
    """Return the partition without an ELR if its ISR is large enough, also after a change of settings."""
    enough = len(partition.isr) >= partition.wanted_in_sync
    return replace(partition, elr=()) if partition.elr and enough else partition


def prefer(partition: Partition, live: Collection[int]) -> Partition:
    """Return the partition led by its preferred replica, if that replica is live and in the ISR."""
    preferred = partition.replicas[0]
    if partition.leader == preferred or preferred not in live or preferred not in partition.isr:
        return partition
    if partition.in_doubt:
        return partition  # `elect` decides, by comparing logs
    return replace(
        partition, leader=preferred, leader_epoch=partition.leader_epoch + 1, last_leader=NO_LEADER
    )


def begin_reassignment(partition: Partition, target: Sequence[int]) -> Partition:
    """Return the partition with the target replicas added; the others stay until all targets are in the ISR.

    Replicas that an earlier reassignment has added and this one does not want stay as well: they may be the
    only ones in the ISR. They are listed both as adding and as removing, and are removed in either case.
    """
    original = tuple(replica for replica in partition.replicas if replica not in partition.adding)
    removing = tuple(replica for replica in partition.replicas if replica not in target)
    adding = tuple(each for each in (*target, *removing) if each not in original)
    return replace(partition, replicas=(*target, *removing), adding=adding, removing=removing)


def cancel_reassignment(partition: Partition) -> Partition:
    """Return the partition on its original replicas; only those stay in ISR and ELR."""
    original = tuple(replica for replica in partition.replicas if replica not in partition.adding)
    isr = tuple(each for each in partition.isr if each in original)
    elr = tuple(each for each in partition.elr if each in original)
    changed = _on_fewer(replace(partition, adding=(), removing=(), elr=elr), original)
    return _with_isr(changed, isr) if isr else replace(changed, isr=())


def finish_reassignment(partition: Partition, live: Collection[int], rank: Rank | None = None) -> Partition:
    """Return the partition on its target replicas alone, if all of them are in the ISR."""
    target = tuple(replica for replica in partition.replicas if replica not in partition.removing)
    moving = bool(partition.adding or partition.removing)
    if not moving or not set(target) <= set(partition.isr):
        return partition
    isr = tuple(each for each in partition.isr if each in target)
    moved = _on_fewer(replace(partition, adding=(), removing=(), isr=isr, elr=()), target)
    if moved.leader in target:
        return moved
    return elect(replace(moved, leader=NO_LEADER, last_leader=moved.leader), live, rank=rank)


def _on_fewer(partition: Partition, replicas: tuple[int, ...]) -> Partition:
    """Return the partition on some of its replicas, in a new leader epoch if others are removed.

    A removed replica deletes its log. If it is added again soon, it is empty: in the old leader epoch a
    leader that has missed the removal would still count on the log that the replica had before.
    """
    goes = not set(partition.replicas) <= set(replicas)
    epoch = partition.leader_epoch + (goes and partition.leader in replicas)
    return replace(partition, replicas=replicas, leader_epoch=epoch)
