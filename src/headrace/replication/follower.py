"""Log divergence: how a follower finds out up to which offset its log equals its leader's. Pure.

A follower fetches from its log end offset, and names the leader epoch of its last record. A leader whose log
has diverged from the follower's responds with the largest epoch up to that one that it knows, and that
epoch's end offset. The follower truncates its log to what both have of that epoch, and fetches again. Each
round leaves an older epoch at the end of the follower's log, so that the rounds end where the two logs are
equal (KIP-101, KIP-279, KIP-595).
"""

from typing import NamedTuple, Protocol

UNKNOWN = -1


class Epochs(Protocol):
    """The leader epochs of one log."""

    def at(self, offset: int) -> int: ...

    def end_of(self, epoch: int, log_end_offset: int) -> tuple[int, int]: ...


class Position(NamedTuple):
    """The end of a follower's log, as a fetch request names it."""

    offset: int  # the log end offset
    last_epoch: int  # the leader epoch of the last record; -1 if the log is empty
    leader_epoch: int  # the current one


class EpochEnd(NamedTuple):
    """The offset at which a leader epoch ended in a leader's log."""

    epoch: int
    end_offset: int


def position(epochs: Epochs, *, start: int, end: int, leader_epoch: int) -> Position:
    """Return the fetch position of a follower whose log reaches from `start` to `end`."""
    return Position(end, epochs.at(end - 1) if end > start else UNKNOWN, leader_epoch)


def find_divergence(epochs: Epochs, log_end_offset: int, *, offset: int, last_epoch: int) -> EpochEnd | None:
    """Return the leader's end of the follower's last epoch if the logs have diverged, else None.

    (-1, -1) means that the leader does not know the epoch: the follower is out of range.
    """
    known = EpochEnd(*epochs.end_of(last_epoch, log_end_offset))
    if known.end_offset == UNKNOWN:
        return EpochEnd(UNKNOWN, UNKNOWN)
    return known if known.epoch < last_epoch or known.end_offset < offset else None


def truncation_offset(epochs: Epochs, diverging: EpochEnd, *, start: int, end: int) -> int:
    """Return the offset to which a follower truncates its log when the leader reports `diverging`."""
    own_end = epochs.end_of(diverging.epoch, end)[1]
    shared = diverging.end_offset if own_end == UNKNOWN else min(diverging.end_offset, own_end)
    return max(shared, start)


def end_of_possible_epochs(epochs: Epochs, *, leader_epoch: int, end: int) -> int | None:
    """Return where the records of epochs after the current `leader_epoch` begin; None if there are none.

    Nobody can have written such records: the follower's checkpoint or its batches are damaged.
    """
    offset = epochs.end_of(leader_epoch, end)[1]
    return None if offset in {UNKNOWN, end} else offset


class Restart(NamedTuple):
    """Where a follower continues that is outside the offset range of its leader."""

    offset: int
    from_nothing: bool  # the follower's whole log is older than the leader's


def restart(end: int, *, leader_start: int, leader_end: int) -> Restart | None:
    """Return where a follower with log end offset `end` continues; None if it is in range by now."""
    if end > leader_end:
        return Restart(leader_end, from_nothing=False)
    if end < leader_start:
        return Restart(leader_start, from_nothing=True)
    return None
