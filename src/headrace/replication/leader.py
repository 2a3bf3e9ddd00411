"""A leader's view of its partition: how far each follower is, what is committed, who is in sync.

What is committed is what every replica in sync has. A follower comes in sync when it has all that is
committed and everything from before this leader's time; it falls out of sync when it has not caught up for
too long. The leader only proposes: the set changes when the controller has written it down. Until then both
sets count, the old one and the proposed, so that nothing counts as committed that either of them lacks.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

UNKNOWN = -1


@dataclass(slots=True)
class Follower:
    """What the leader knows of one follower."""

    log_end_offset: int = UNKNOWN
    caught_up_ms: int = 0  # when it last had all that there was
    fetched_ms: int = 0
    end_when_fetched: int = 0  # the leader's log end at its last fetch
    broker_epoch: int = UNKNOWN


@dataclass(slots=True, kw_only=True)
class Leader:
    """The leader's part of a partition, from one leader epoch to the next."""

    broker_id: int
    replicas: tuple[int, ...]
    isr: frozenset[int]
    min_insync_replicas: int
    epoch_start_offset: int  # where this leader's epoch begins in the log
    followers: dict[int, Follower] = field(default_factory=dict)
    proposed: frozenset[int] | None = None  # sent to the controller, not answered yet
    eligible: frozenset[int] = frozenset()  # not in sync, and may lead: they have all that is committed

    @classmethod
    def begin(
        cls,
        broker_id: int,
        *,
        replicas: Collection[int],
        isr: Collection[int],
        min_insync_replicas: int,
        log_end_offset: int,
        now_ms: int,
    ) -> "Leader":
        """A new leader knows nothing of its followers; they have a whole lag's time to be heard from."""
        leader = cls(
            broker_id=broker_id,
            replicas=tuple(replicas),
            isr=frozenset(isr),
            min_insync_replicas=min_insync_replicas,
            epoch_start_offset=log_end_offset,
        )
        leader.use_replicas(replicas, now_ms)
        return leader

    def use_replicas(self, replicas: Collection[int], now_ms: int) -> None:
        """Other brokers have replicas from now on."""
        self.replicas = tuple(replicas)
        known = self.followers
        self.followers = {
            each: known.get(each, Follower(caught_up_ms=now_ms))
            for each in self.replicas
            if each != self.broker_id
        }

    def use_isr(self, isr: Collection[int], eligible: Collection[int] = ()) -> None:
        """The controller has spoken: this is the set, and nothing is proposed any more."""
        self.isr = frozenset(isr)
        self.eligible = frozenset(eligible)
        self.proposed = None

    # -- what is committed ---------------------------------------------------------------------

    @property
    def counted(self) -> frozenset[int]:
        """The replicas that must have a record before it is committed."""
        return self.isr if self.proposed is None else self.isr | self.proposed

    def high_watermark(self, log_end_offset: int, before: int) -> int:
        """The offset that everything below is committed; never less than `before`.

        With fewer replicas in sync than the topic wants nothing new is committed: a replica that has left
        the set in such a time still has all that is (KIP-966).
        """
        if self.eligible or len(self.isr) < min(self.min_insync_replicas, len(self.replicas)):
            return before
        committed = log_end_offset
        for each in self.counted:
            if each != self.broker_id:
                committed = min(committed, self._end_of(each))
        return max(before, committed)

    def _end_of(self, broker_id: int) -> int:
        follower = self.followers.get(broker_id)
        return UNKNOWN if follower is None else follower.log_end_offset

    # -- who is in sync ------------------------------------------------------------------------

    def fetched(
        self, broker_id: int, offset: int, *, log_end_offset: int, now_ms: int, broker_epoch: int = UNKNOWN
    ) -> None:
        """A follower asks for `offset`, so it has everything before."""
        follower = self.followers[broker_id]
        if offset >= log_end_offset:
            follower.caught_up_ms = now_ms
        elif offset >= follower.end_when_fetched:
            # It has what there was when it last asked: a leader under load is always a little ahead.
            follower.caught_up_ms = max(follower.caught_up_ms, follower.fetched_ms)
        follower.log_end_offset = offset
        follower.fetched_ms, follower.end_when_fetched = now_ms, log_end_offset
        follower.broker_epoch = broker_epoch

    def wants(
        self, *, high_watermark: int, log_end_offset: int, now_ms: int, max_lag_ms: int, live: Collection[int]
    ) -> frozenset[int] | None:
        """The set that should be in sync; None if it is, or a proposal is under way."""
        if self.proposed is not None:
            return None
        wanted = {self.broker_id}
        for broker_id, follower in self.followers.items():
            if broker_id in self.isr:
                lags = now_ms - follower.caught_up_ms > max_lag_ms
                if not lags or follower.log_end_offset == log_end_offset:
                    wanted.add(broker_id)
            elif (
                broker_id in live
                and now_ms - follower.fetched_ms <= max_lag_ms  # or it would fall out again at once
                and follower.log_end_offset >= max(high_watermark, self.epoch_start_offset)
            ):
                wanted.add(broker_id)
        return frozenset(wanted) if wanted != self.isr else None

    def propose(self, isr: frozenset[int]) -> None:
        self.proposed = isr

    def withdraw(self) -> None:
        """The proposal was refused, or its answer was lost; whoever speaks next settles it."""
        self.proposed = None
