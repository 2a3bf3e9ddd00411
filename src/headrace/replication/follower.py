"""A follower's part of a partition: where its log stands, and what a leader's answer makes of it. Pure.

A follower asks from its log's end, and says in which epoch its last record was written. A leader whose log
has parted from it says where that epoch ended in its own log, or the one before it that it knows. The
follower keeps what both have of that epoch, and asks again: each round leaves an older epoch at the end, so
that it stops where the two logs are one (KIP-101, KIP-279, KIP-595).
"""

from typing import NamedTuple, Protocol

UNKNOWN = -1


class Epochs(Protocol):
    """Which leader epoch wrote what, in one log."""

    def at(self, offset: int) -> int: ...

    def end_of(self, epoch: int, log_end_offset: int) -> tuple[int, int]: ...


class Position(NamedTuple):
    """Where a follower's log stands: what it asks its leader with."""

    offset: int  # its end
    last_epoch: int  # of the record before that; -1 in an empty log
    leader_epoch: int  # of the leader that it follows


class EpochEnd(NamedTuple):
    """The offset at which an epoch ended in a leader's log."""

    epoch: int
    end_offset: int


def position(epochs: Epochs, *, start: int, end: int, leader_epoch: int) -> Position:
    """What a follower whose log goes from `start` to `end` asks with."""
    return Position(end, epochs.at(end - 1) if end > start else UNKNOWN, leader_epoch)


def where_parted(epochs: Epochs, log_end_offset: int, *, offset: int, last_epoch: int) -> EpochEnd | None:
    """The leader's word: where the log of a follower at `offset` parted from this one; None if it did not.

    (-1, -1) says that nothing is known of that epoch: such a follower is out of range.
    """
    known = EpochEnd(*epochs.end_of(last_epoch, log_end_offset))
    if known.end_offset == UNKNOWN:
        return EpochEnd(UNKNOWN, UNKNOWN)
    return known if known.epoch < last_epoch or known.end_offset < offset else None


def keeps(epochs: Epochs, parted: EpochEnd, *, start: int, end: int) -> int:
    """The follower's answer to that: the offset up to which its log stays."""
    own_end = epochs.end_of(parted.epoch, end)[1]
    shared = parted.end_offset if own_end == UNKNOWN else min(parted.end_offset, own_end)
    return max(shared, start)


class Restart(NamedTuple):
    """How a follower goes on that is out of its leader's range."""

    offset: int
    from_nothing: bool  # all of its log is older than the leader's


def restart(end: int, *, leader_start: int, leader_end: int) -> Restart | None:
    """Where a follower at `end` goes on; None if it is in range by now."""
    if end > leader_end:
        return Restart(leader_end, from_nothing=False)
    if end < leader_start:
        return Restart(leader_start, from_nothing=True)
    return None
