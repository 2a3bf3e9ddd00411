"""A group coordinator for tests: its log is a list, its clock is set by hand, and it can crash.

    desk = GroupDesk(initial_rebalance_delay_ms=0)
    desk.set_topics(orders=3)
    waiter = desk.join(join_request(member_id="", requires_known_member_id=False))
    desk.pass_time(10_000)
    desk.crash()

Every record is encoded for the log and decoded from it, as in a broker.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from headrace.coordinators.group.consumer_protocol import Heartbeat, HeartbeatResult
from headrace.coordinators.group.coordinator import GroupCoordinator
from headrace.coordinators.group.decision import Client, Decision, Join, Leaving, Sync
from headrace.coordinators.group.errors import GroupError
from headrace.coordinators.group.limits import ConsumerTimeouts, GroupLimits
from headrace.coordinators.group.offsets import Commit, Committed
from headrace.coordinators.group.records import GroupRecord, decode_record, encode_record
from headrace.coordinators.topics import Topic, Topics
from headrace.protocol.consumer_protocol import ConsumerProtocolSubscription, encode_subscription

LogEntry = tuple[bytes, bytes | None]
CLIENT = Client("client", "/127.0.0.1")
INTERNAL = frozenset({"__consumer_offsets", "__transaction_state"})


class Waiter:
    """A request that waits for its one answer."""

    def __init__(self) -> None:
        self.answers: list[Any] = []

    def __repr__(self) -> str:
        return f"Waiter({self.answers})"

    @property
    def is_answered(self) -> bool:
        return bool(self.answers)

    @property
    def answer(self) -> Any:
        (answer,) = self.answers
        return answer


class GroupDesk:
    """One coordinator, and what a broker does for it: append, apply, reply, keep time."""

    def __init__(self, limits: GroupLimits | None = None, *, now_ms: int = 1_000_000, **some: Any) -> None:
        self.limits = limits or GroupLimits(**some)
        self.now_ms = now_ms
        self.log: list[LogEntry] = []
        self.topics = Topics()
        self._ids = 0
        self.timeouts: dict[str, ConsumerTimeouts] = {}  # of groups with settings of their own
        self.coordinator = GroupCoordinator(self.limits, self._new_id, self.timeouts)

    def _new_id(self) -> str:
        self._ids += 1
        return f"id{self._ids}"

    def set_topics(self, **partitions: int) -> Self:
        """Replace the topics; a topic that existed before keeps its id."""
        by_name = {
            name: Topic(self.topics.by_name[name].topic_id, count)
            if name in self.topics.by_name
            else Topic(f"{name}/{self.topics.version + 1}".encode().ljust(16)[:16], count)
            for name, count in partitions.items()
        }
        self.topics = Topics.of(self.topics.version + 1, by_name, INTERNAL)
        return self

    def topic_id(self, name: str) -> bytes:
        return self.topics.by_name[name].topic_id

    # -- requests ------------------------------------------------------------------------------

    def decide(self, decide: Callable[[GroupCoordinator, int], Decision]) -> Any:
        """Carry out a decision, and return its answer."""
        self.coordinator.topics_changed(self.topics)
        decision = decide(self.coordinator, self.now_ms)
        self.carry_out(decision)
        return decision.answer

    def carry_out(self, decision: Decision) -> None:
        entries = [encode_record(record) for record in decision.records]
        self.log += entries
        for entry in entries:
            self.apply(_decoded(entry))
        if decision.on_applied is not None:
            decision.on_applied()
        for waiter, answer in decision.replies:
            self.reply(waiter, answer)

    def apply(self, record: GroupRecord) -> None:
        self.coordinator.apply(record)

    def reply(self, waiter: Waiter, answer: Any) -> None:
        waiter.answers.append(answer)
        assert len(waiter.answers) == 1, f"answered {len(waiter.answers)} times: {waiter.answers}"

    def join(self, join: Join) -> Waiter:
        waiter = Waiter()
        self.decide(lambda coordinator, now_ms: coordinator.join(join, waiter, now_ms))
        return waiter

    def sync(self, sync: Sync) -> Waiter:
        waiter = Waiter()
        self.decide(lambda coordinator, now_ms: coordinator.sync(sync, waiter, now_ms))
        return waiter

    def heartbeat(
        self, member_id: str, generation: int, instance_id: str | None = None, group_id: str = "g"
    ) -> None:
        self.coordinator.topics_changed(self.topics)
        self.coordinator.heartbeat(group_id, member_id, instance_id, generation, self.now_ms)

    def leave(self, *leaving: tuple[str, str | None], group_id: str = "g") -> list[GroupError | None]:
        members = [Leaving(*each) for each in leaving]
        answer: list[GroupError | None] = self.decide(lambda c, now_ms: c.leave(group_id, members, now_ms))
        return answer

    def beat(self, beat: Heartbeat) -> HeartbeatResult:
        answer: HeartbeatResult = self.decide(lambda c, now_ms: c.consumer_heartbeat(beat, now_ms))
        return answer

    def commit(self, commit: Commit) -> None:
        self.decide(lambda coordinator, now_ms: coordinator.commit(commit, now_ms))

    # -- time and crashes ----------------------------------------------------------------------

    def pass_time(self, ms: int) -> None:
        """Advance the clock, and expire each deadline when it is due."""
        until = self.now_ms + ms
        while (due_ms := self.coordinator.deadlines.next_ms()) is not None and due_ms <= until:
            self.now_ms = max(self.now_ms, due_ms)
            self.expire()
        self.now_ms = until

    def expire(self) -> None:
        """Expire all deadlines that are due now."""
        self.coordinator.topics_changed(self.topics)
        for decision in self.coordinator.expire(self.now_ms):
            self.carry_out(decision)

    def crash(self) -> None:
        """Replace the coordinator by one that has only read the log."""
        self.coordinator = self.replayed()
        self.coordinator.topics_changed(self.topics)
        self.coordinator.start(self.now_ms)

    def replayed(self, log: Iterable[LogEntry] | None = None) -> GroupCoordinator:
        """Return a new coordinator that has read the log and done nothing else."""
        coordinator = GroupCoordinator(self.limits, self._new_id, self.timeouts)
        for entry in self.log if log is None else log:
            coordinator.apply(_decoded(entry))
        return coordinator


def compacted(log: Iterable[LogEntry]) -> list[LogEntry]:
    """Return the log as the cleaner leaves it: the last record of each key, and no tombstones."""
    last: dict[bytes, bytes | None] = {}
    for key, value in log:
        last.pop(key, None)  # so that it has the position of its last record
        last[key] = value
    return [(key, value) for key, value in last.items() if value is not None]


def _decoded(entry: LogEntry) -> GroupRecord:
    record = decode_record(*entry)
    assert record is not None, f"{entry!r} is not a record of ours"
    assert encode_record(record) == entry, f"{record} does not survive the round trip"
    return record


# -- requests with defaults ------------------------------------------------------------------------


def subscription(*topics: str) -> bytes:
    return encode_subscription(ConsumerProtocolSubscription(topics=list(topics)), 0)


def join_request(member_id: str = "", instance_id: str | None = None, **some: Any) -> Join:
    usual = Join(
        group_id="g",
        member_id=member_id,
        instance_id=instance_id,
        client=CLIENT,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=(("range", subscription("orders")),),
        requires_known_member_id=False,
        supports_skipping_assignment=True,
    )
    return usual._replace(**some)


def sync_request(
    member_id: str, generation: int, assignments: dict[str, bytes] | None = None, **some: Any
) -> Sync:
    usual = Sync(
        group_id="g",
        member_id=member_id,
        instance_id=None,
        generation=generation,
        protocol_type=None,
        protocol_name=None,
        assignments=assignments or {},
    )
    return usual._replace(**some)


def beat_request(member_id: str, epoch: int, **some: Any) -> Heartbeat:
    """Return the heartbeat of a member; with epoch 0, of one that joins and subscribes to `orders`."""
    usual = Heartbeat("g", member_id, epoch, CLIENT)
    if epoch == 0:
        usual = usual._replace(rebalance_timeout_ms=60_000, topics=frozenset({"orders"}), owned={})
    return usual._replace(**some)


def commit_request(
    offsets: Sequence[tuple[str, int, int]], member_id: str = "", generation: int = -1, **some: Any
) -> Commit:
    """Return an OffsetCommit of (topic, partition, offset); without a member id it is of no member."""
    committed = [(topic, partition, Committed(offset, -1, "", 0)) for topic, partition, offset in offsets]
    return Commit("g", member_id, None, generation, committed, version=9)._replace(**some)
