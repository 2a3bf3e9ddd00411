"""A coordinator at its desk, with clients, and an eye on what must never happen.

(a) A partition has one owner. In a classic group: within a generation, nobody is told of a partition that
    somebody else was told of. In a consumer group: at any moment, counting what a member was told of, until
    it has told the coordinator that it gave it up, or is a member no more.
(b) Generations and epochs never go back. A generation that nobody has synced in is not written down; after
    a crash it comes again, as in Kafka. A group that nobody is in may begin anew.
(c) What is written down is what the records say.
(d) Nobody is answered twice.
(e) Nobody is accepted with the generation, or the epoch, of another time.
(f) Whoever is refused has changed nothing.
(g) Offsets are those of the commits that were accepted.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Protocol

from headrace.coordinators.group.classic import ClassicGroup
from headrace.coordinators.group.consumer import (
    LEAVE_GROUP_STATIC_MEMBER_EPOCH,
    ConsumerGroup,
    ConsumerMember,
)
from headrace.coordinators.group.consumer_protocol import Heartbeat, HeartbeatResult
from headrace.coordinators.group.coordinator import GroupCoordinator
from headrace.coordinators.group.decision import Decision, Join, Sync, Synced
from headrace.coordinators.group.errors import GroupError
from headrace.coordinators.group.kinds import Group
from headrace.coordinators.group.offsets import Commit, Committed
from headrace.coordinators.group.records import decode_record, encode_record, is_offset_commit
from property.group_clients.assigning import Place, decode_places
from property.group_clients.written import written
from support.groups import GroupDesk, LogEntry, Waiter, compacted

Partition = tuple[bytes, int]  # topic id and number


class Disconnected(Exception):
    """The broker died while it served a request: whoever sent it does not know what became of it."""


class Dies(Enum):
    BEFORE_WRITING = "nothing of the decision is in the log"
    AFTER_WRITING = "all of it is, and nobody was told"


class Asked(Waiter):
    """A waiter that remembers its request."""

    def __init__(self, request: Join | Sync) -> None:
        super().__init__()
        self.request = request
        self.is_lost = False  # the broker died
        self.granted: set[Partition] = set()  # by a consumer group


class GroupClient(Protocol):
    """What the world has to know of a client."""

    member_id: str
    claims: set[Partition]

    def was_fenced(self) -> None: ...
    def group_was_upgraded(self, assigned: set[Partition]) -> None: ...


class World(GroupDesk):
    """One group, `g`, whose clients are in `clients`."""

    def __init__(self, **limits: Any) -> None:
        super().__init__(**limits)
        self.clients: list[GroupClient] = []
        self.waiting: list[Asked] = []
        self.dies: Dies | None = None
        self.expected: dict[tuple[str, int], Committed] = {}
        self.assigned_for = 0  # the version of topics that a leader has last assigned
        self._follower = self.replayed()  # is never asked anything, only reads along
        self._told: defaultdict[tuple[int, int], dict[Place, str]] = defaultdict(dict)
        self._life = 0  # a classic group and a consumer group of one name are two lives
        self._seen: Group | None = None
        self._number = 0
        self._had_members = False
        self._assigned: dict[str, bytes] = {}  # by the last generation that was written down
        self._epochs: dict[str, int] = {}

    @property
    def number(self) -> int:
        """The group's generation, or epoch."""
        return _number(self.group)

    @property
    def group(self) -> Group | None:
        return self.coordinator.groups.get("g")

    # -- serving -------------------------------------------------------------------------------

    def ask(self, request: Join | Sync) -> Asked:
        """JoinGroup or SyncGroup: the answer comes later, or never."""
        waiter = Asked(request)
        self.waiting.append(waiter)

        def decide(coordinator: GroupCoordinator, now_ms: int) -> Decision:
            if isinstance(request, Join):
                return coordinator.join(request, waiter, now_ms)
            return coordinator.sync(request, waiter, now_ms)

        try:
            self.serve(lambda: self.decide(decide))
        except GroupError:
            self.waiting.remove(waiter)
            raise
        return waiter

    def serve(self, serve: Callable[[], Any]) -> Any:
        """Answer a request; one that is refused must have changed nothing."""
        before = written(self.coordinator), len(self.log)
        try:
            answer = serve()
        except GroupError:
            assert (written(self.coordinator), len(self.log)) == before, "refused, and something changed"
            raise
        self.check()
        return answer

    def carry_out(self, decision: Decision) -> None:
        if self.dies is None:
            super().carry_out(decision)
            return
        if self.dies is Dies.AFTER_WRITING:
            entries = [encode_record(record) for record in decision.records]
            self.log += entries
            self._follow(entries)
        self.dies = None
        self.crash()
        raise Disconnected

    def apply(self, record: Any) -> None:
        super().apply(record)
        self._follow([encode_record(record)])

    def _follow(self, entries: Iterable[LogEntry]) -> None:
        for entry in entries:
            record = decode_record(*entry)
            assert record is not None
            self._follower.apply(record)

    def reply(self, waiter: Waiter, answer: Any) -> None:
        super().reply(waiter, answer)
        assert isinstance(waiter, Asked)
        assert waiter in self.waiting, "answered, and does not wait"
        self.waiting.remove(waiter)
        if isinstance(answer, Synced) and isinstance(waiter.request, Sync):
            places = decode_places(answer.assignment)
            if isinstance(self.group, ConsumerGroup):
                waiter.granted = self.partitions(places)
            else:
                self._check_generation(waiter.request, places)

    def _check_generation(self, sync: Sync, places: set[Place]) -> None:
        told = self._told[self._life, sync.generation]
        name = sync.instance_id or sync.member_id
        for place in places:
            assert told.setdefault(place, name) == name, f"{place} has two owners in {sync.generation}"

    def commit(self, commit: Commit) -> None:
        new = {(topic, partition): committed for topic, partition, committed in commit.offsets}
        assert_current = self._current(commit.member_id, commit.generation)
        try:
            super().commit(commit)
        except Disconnected:
            if self.coordinator.offsets.of("g") != self.expected:  # it is in the log
                self.expected |= new
            raise
        assert_current()
        self.expected |= new

    def heartbeat(
        self, member_id: str, generation: int, instance_id: str | None = None, group_id: str = "g"
    ) -> None:
        super().heartbeat(member_id, generation, instance_id, group_id)
        self._current(member_id, generation)()

    def beat(self, beat: Heartbeat) -> HeartbeatResult:
        assert_current = self._current(beat.member_id, beat.epoch, or_before=True)
        answer = super().beat(beat)
        if beat.epoch > 0:
            assert_current()
        return answer

    def _current(self, member_id: str, number: int, *, or_before: bool = False) -> Callable[[], None]:
        """What fails unless this is the generation, or the epoch, that the member is in now."""
        group = self.group
        allowed = {-1}  # of a group without members
        if group is not None and group.members:
            member = group.members.get(member_id)
            allowed = set()
            if isinstance(member, ConsumerMember):
                allowed = {member.epoch, member.previous_epoch} if or_before else {member.epoch}
            elif isinstance(group, ClassicGroup) and member is not None:
                allowed = {group.generation}

        def check() -> None:
            assert number in allowed, f"{member_id} was accepted with {number}, not {allowed}"

        return check

    # -- things that happen --------------------------------------------------------------------

    def expire(self) -> None:
        try:
            super().expire()
        except Disconnected:
            return
        self.check()

    def crash(self, *, after_compaction: bool = False) -> None:
        self.dies = None
        if after_compaction:
            self.log = compacted(self.log)
        for waiter in self.waiting:
            waiter.is_lost = True
        self.waiting.clear()
        super().crash()
        self._number = min(self._number, _number(self._follower.groups.get("g")))
        self.check()

    def forget_topic(self, name: str) -> None:
        self.expected = {place: each for place, each in self.expected.items() if place[0] != name}
        self.decide(lambda coordinator, now_ms: coordinator.topic_deleted(name, now_ms))
        self.check()

    def expire_offsets(self) -> None:
        self.decide(lambda coordinator, now_ms: coordinator.expire_offsets(now_ms))
        left = dict(self.coordinator.offsets.of("g"))
        for place, committed in self.expected.items():
            young = self.now_ms - committed.committed_ms < self.limits.offsets_retention_ms
            assert left.get(place) == committed or not (young or place in left), f"{place} is gone too soon"
        self.expected = left
        self.check()

    def delete_group(self) -> None:
        """DeleteGroups."""

        def delete() -> None:
            self.decide(lambda coordinator, now_ms: coordinator.delete_group("g", now_ms))
            self.expected = {}

        self.serve(delete)
        assert self.group is None

    # -- what must hold ------------------------------------------------------------------------

    def check(self) -> None:
        """After every request and every deadline."""
        self._check_written()
        self._check_numbers()
        self._check_owners()
        assert dict(self.coordinator.offsets.of("g")) == self.expected

    def _check_written(self) -> None:
        ours, theirs = written(self.coordinator), written(self._follower)
        if "g" not in ours["groups"] and isinstance(self.group, ClassicGroup):
            theirs["groups"].pop("g", None)  # it is on its way to a state that is written down
        assert ours == theirs

    def check_log(self) -> None:
        """Whoever reads the log knows the same, before and after compaction, and with commits read last."""
        known = written(self._follower)
        assert written(self.replayed()) == known
        assert written(self.replayed(compacted(self.log))) == known
        commits_last = sorted(self.log, key=lambda entry: is_offset_commit(entry[0]))
        assert written(self.replayed(commits_last)) == known

    def _check_numbers(self) -> None:
        group, before = self.group, self._seen
        if type(group) is not type(before):
            self._life += 1
            self._epochs = {}
            if isinstance(group, ConsumerGroup) and isinstance(before, ClassicGroup):
                self._upgraded()
        if group is None or not (self._had_members or type(group) is type(before)):
            self._number = 0
        number = _number(group)
        assert number >= self._number, f"{group} was at {self._number}"
        if isinstance(group, ConsumerGroup):
            self._check_epochs(group)
        self._seen, self._number, self._had_members = group, number, bool(group and group.members)
        follower = self._follower.groups.get("g")
        members = follower.members.values() if isinstance(follower, ClassicGroup) else ()
        self._assigned = {member.member_id: member.assignment for member in members}

    def _upgraded(self) -> None:
        """From now on the coordinator says who owns what: it knows what the last generation was assigned."""
        for client in self.clients:
            places = decode_places(self._assigned.get(client.member_id, b""))
            client.group_was_upgraded(self.partitions(places))

    def _check_epochs(self, group: ConsumerGroup) -> None:
        assert group.target_epoch <= group.epoch
        for member_id, member in group.members.items():
            assert member.epoch <= group.epoch
            before = self._epochs.get(member_id, -1)
            assert member.epoch >= before or member.epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH, (
                f"{member} was at {before}"
            )
        self._epochs = {member_id: member.epoch for member_id, member in group.members.items()}

    def _check_owners(self) -> None:
        group = self.group
        if not isinstance(group, ConsumerGroup):
            return
        owners = {owned: member_id for member_id, each in group.members.items() for owned in each.owns()}
        assert sum(len(list(member.owns())) for member in group.members.values()) == len(owners)
        assert owners == group.owners
        claimed: dict[Partition, str] = {}
        for client in self.clients:
            if client.member_id not in group.members:
                client.was_fenced()
            for partition in client.claims:
                other = claimed.setdefault(partition, client.member_id)
                assert other == client.member_id, f"{partition} is {other}'s and {client.member_id}'s"

    def partitions(self, places: Iterable[Place]) -> set[Partition]:
        known = self.topics.by_name
        return {(known[topic].topic_id, number) for topic, number in places if topic in known}


def _number(group: Group | None) -> int:
    if group is None:
        return 0
    assert isinstance(group, ClassicGroup | ConsumerGroup)
    return group.generation if isinstance(group, ClassicGroup) else group.epoch
