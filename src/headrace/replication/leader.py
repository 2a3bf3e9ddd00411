"""A leader's view of its partition: followers, high watermark and ISR. Pure.

A record is committed when every replica of the ISR has it. A follower joins the ISR when it has all committed
records and everything from before this leader epoch; it leaves the ISR when it has not caught up for too
long. The leader only proposes: the ISR changes when the controller has written the proposal. Until then both
sets count, the ISR and the proposed one, so that no record counts as committed that a replica in either of
them lacks.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

UNKNOWN = -1
UNUSABLE = 3
"""A follower that fetches the same records so often probably finds them damaged."""


@dataclass(slots=True)
class Follower:
    """The state of one follower, as its leader knows it."""

    log_end_offset: int = UNKNOWN
    caught_up_ms: int = 0  # when it last had all records of the leader
    fetched_ms: int = 0
    end_when_fetched: int = 0  # the leader's log end offset at the follower's last fetch
    broker_epoch: int = UNKNOWN
    served_offset: int = UNKNOWN  # of the records that it was last sent
    served: int = 0  # how often in a row it was sent records from there


@dataclass(slots=True, kw_only=True)
class Leader:
    """The leader's state of a partition, for one leader epoch."""

    broker_id: int
    replicas: tuple[int, ...]
    isr: frozenset[int]
    min_insync_replicas: int
    epoch_start_offset: int  # where this leader epoch begins in the log
    followers: dict[int, Follower] = field(default_factory=dict)
    proposed: frozenset[int] | None = None  # the ISR sent to the controller, without a response yet
    eligible: frozenset[int] = frozenset()  # the ELR: not in the ISR, but they have every committed record

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
        """Return a new leader's state. Its followers have the whole maximum lag for their first fetch."""
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
        self.replicas = tuple(replicas)
        known = self.followers
        self.followers = {
            replica: known.get(replica, Follower(caught_up_ms=now_ms))
            for replica in self.replicas
            if replica != self.broker_id
        }

    def use_isr(self, isr: Collection[int], eligible: Collection[int] = ()) -> None:
        """Use the ISR that the controller has written; this ends the proposal."""
        self.isr = frozenset(isr)
        self.eligible = frozenset(eligible)
        self.proposed = None

    # -- high watermark ------------------------------------------------------------------------

    @property
    def counted(self) -> frozenset[int]:
        """Return the replicas that must have a record before it is committed."""
        return self.isr if self.proposed is None else self.isr | self.proposed

    def high_watermark(self, log_end_offset: int, before: int) -> int:
        """Return the high watermark: every record below it is committed. It never falls below `before`.

        While the ISR is smaller than `min.insync.replicas` nothing new is committed: a replica that leaves
        the ISR during that time still has every committed record (KIP-966).
        """
        assert 0 <= before <= log_end_offset, (before, log_end_offset)
        if self.eligible or len(self.isr) < min(self.min_insync_replicas, len(self.replicas)):
            return before
        committed = log_end_offset
        for each in self.counted:
            if each != self.broker_id:
                follower = self.followers.get(each)
                committed = min(committed, UNKNOWN if follower is None else follower.log_end_offset)
        return max(before, committed)

    # -- ISR -----------------------------------------------------------------------------------

    def fetched(
        self, broker_id: int, offset: int, *, log_end_offset: int, now_ms: int, broker_epoch: int = UNKNOWN
    ) -> None:
        """Note that a follower fetches from `offset`: it has every record before."""
        follower = self.followers[broker_id]
        if offset >= log_end_offset:
            follower.caught_up_ms = now_ms
        elif offset >= follower.end_when_fetched:
            # It has all records of the time of its last fetch: a leader under load is always a little ahead.
            follower.caught_up_ms = max(follower.caught_up_ms, follower.fetched_ms)
        follower.log_end_offset = offset
        follower.fetched_ms, follower.end_when_fetched = now_ms, log_end_offset
        follower.broker_epoch = broker_epoch

    def serve(self, broker_id: int, offset: int) -> bool:
        """Note that a follower is sent records; return whether it could obviously not use them before."""
        follower = self.followers[broker_id]
        follower.served = follower.served + 1 if offset == follower.served_offset else 1
        follower.served_offset = offset
        return follower.served == UNUSABLE  # once for each offset

    def desired_isr(
        self, *, high_watermark: int, log_end_offset: int, now_ms: int, max_lag_ms: int, live: Collection[int]
    ) -> frozenset[int] | None:
        """Return the ISR that should be proposed; None if it is current, or if a proposal is pending."""
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
                and now_ms - follower.fetched_ms <= max_lag_ms  # or it would leave the ISR again at once
                and follower.log_end_offset >= max(high_watermark, self.epoch_start_offset)
            ):
                wanted.add(broker_id)
        return frozenset(wanted) if wanted != self.isr else None

    def propose(self, isr: frozenset[int]) -> None:
        self.proposed = isr

    def withdraw(self) -> None:
        """Drop the proposal, which the controller has refused on this very state.

        A proposal without a response must stay: the controller may have written it.
        """
        self.proposed = None
