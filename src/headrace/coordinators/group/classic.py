"""A classic group: its members agree on a protocol, and the group leader computes the assignment.

    EMPTY ──join──▶ PREPARING ──all have joined, or timeout──▶ COMPLETING ──leader syncs──▶ STABLE
      ▲                ▲  │                                         │                          │
      └── all left ────┼──┘◀────── a member joins, leaves or misses its session timeout ───────┘

PREPARING waits for every member to (re)join; COMPLETING waits for the leader's assignment. Each transition
from PREPARING to COMPLETING begins a new generation. Only STABLE and EMPTY groups are written to the log:
after a failover a group is in the last of these states, and members of a later generation rejoin.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar, Final

from headrace.coordinators.decision import Waiter, check_transition
from headrace.coordinators.group import records
from headrace.coordinators.group.decision import Protocols
from headrace.coordinators.group.errors import (
    GroupNotEmpty,
    IllegalGeneration,
    RebalanceInProgress,
    UnknownMember,
)
from headrace.coordinators.group.kinds import check_member
from headrace.coordinators.group.offsets import Commit
from headrace.protocol.consumer_protocol import decode_subscription
from headrace.protocol.errors import ProtocolError
from headrace.protocol.message import Message

CONSUMER: str = "consumer"
"""The protocol type of consumers. The coordinator can decode the subscriptions of such members."""


class ClassicState(Enum):
    """The state of a classic group. The values are Kafka's names, which DescribeGroups returns."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


TRANSITIONS: Final = {
    # STABLE and EMPTY follow when records are loaded.
    ClassicState.EMPTY: {ClassicState.PREPARING, ClassicState.STABLE, ClassicState.EMPTY},
    ClassicState.PREPARING: {ClassicState.COMPLETING, ClassicState.EMPTY},
    ClassicState.COMPLETING: {ClassicState.STABLE, ClassicState.PREPARING, ClassicState.EMPTY},
    # STABLE follows when a static member was replaced.
    ClassicState.STABLE: {ClassicState.PREPARING, ClassicState.EMPTY, ClassicState.STABLE},
}


@dataclass(slots=True)
class ClassicMember:
    """A member. `joining`, `syncing` and `is_new` are not durable."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    joining: Waiter | None = None
    syncing: Waiter | None = None
    is_new: bool = False

    def metadata(self, protocol: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")


@dataclass(slots=True)
class ClassicGroup:
    """A classic group. `classic_protocol` decides its transitions; records change its durable state."""

    type_name: ClassVar[str] = "classic"
    metadata_key: ClassVar[type[Message]] = records.GroupMetadataKey
    record_keys: ClassVar[Collection[type[Message]]] = (records.GroupMetadataKey,)

    group_id: str
    state: ClassicState = ClassicState.EMPTY
    generation: int = 0
    protocol_type: str | None = None  # None: the group only commits offsets
    protocol_name: str | None = None
    leader: str | None = None
    state_timestamp_ms: int = -1
    members: dict[str, ClassicMember] = field(default_factory=dict)  # in the order in which they joined
    instances: dict[str, str] = field(default_factory=dict)  # member ids of static members by instance id
    pending: set[str] = field(default_factory=set)  # ids of MEMBER_ID_REQUIRED responses that have not joined
    unsynced: set[str] = field(default_factory=set)
    subscribed: frozenset[str] | None = None  # None: the subscriptions cannot be decoded
    gained_member: bool = False  # since the initial rebalance delay was last extended

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    @property
    def is_unused(self) -> bool:
        return self.is_empty and not self.pending

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of any member."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def all_have_joined(self) -> bool:
        return not self.pending and all(member.joining is not None for member in self.members.values())

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether every member supports one of `protocols`."""
        if self.state is ClassicState.EMPTY:
            return bool(protocol_type and protocols)
        common = self._common_protocols()
        # All members may have left in PREPARING: the next member may then support any protocol.
        return self.protocol_type == protocol_type and any(
            name in common or not self.members for name, _ in protocols
        )

    def choose_protocol(self) -> str:
        """Return the protocol that most members prefer, among those that all members support."""
        common = self._common_protocols()
        votes = Counter(
            next(name for name, _ in member.protocols if name in common) for member in self.members.values()
        )
        return max(votes, key=lambda name: votes[name])

    def _common_protocols(self) -> set[str]:
        known = Counter(name for member in self.members.values() for name, _ in member.protocols)
        return {name for name, count in known.items() if count == len(self.members)}

    def check_member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """Return the member; raise if it is unknown or its instance id belongs to another member."""
        check_member(self, member_id, instance_id)
        return self.members[member_id]

    def check_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise IllegalGeneration(
                f"group {self.group_id!r} is in generation {self.generation}, the request names {generation}"
            )

    def check_commit(self, commit: Commit) -> None:
        if commit.generation < 0 and self.is_empty:
            return
        if commit.generation < 0 and not commit.member_id and commit.instance_id is None:
            raise UnknownMember(f"group {self.group_id!r} has members: only members may commit offsets")
        self.check_transactional_commit(commit)
        if self.state is ClassicState.COMPLETING:
            raise RebalanceInProgress(f"group {self.group_id!r} is rebalancing and has no assignment yet")

    def check_transactional_commit(self, commit: Commit) -> None:
        if commit.generation < 0 and self.is_empty:
            return
        if commit.generation >= 0 or commit.member_id or commit.instance_id is not None:
            self.check_member(commit.member_id, commit.instance_id)
            self.check_generation(commit.generation)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Accept every request: OffsetFetch has no generation."""

    def check_delete_offsets(self) -> None:
        if not self.is_empty and not self.uses_consumer_protocol:
            raise GroupNotEmpty(
                f"group {self.group_id!r} has members of protocol type {self.protocol_type!r}"
            )

    def is_subscribed(self, topic: str) -> bool:
        """Return whether members subscribe to the topic; assume so if subscriptions cannot be decoded."""
        return self.uses_consumer_protocol if self.subscribed is None else topic in self.subscribed

    def offset_expiration_base_ms(self, committed_ms: int) -> int | None:
        if self.protocol_type is None:
            return committed_ms
        if self.is_empty:
            return self.state_timestamp_ms if self.state_timestamp_ms >= 0 else committed_ms
        if self.state is ClassicState.STABLE and self.uses_consumer_protocol and self.subscribed is not None:
            return committed_ms
        return None

    def move_to(self, state: ClassicState) -> None:
        check_transition(TRANSITIONS, self.state, state, f"group {self.group_id!r}")
        self.state = state

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self.pending.discard(member.member_id)
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        self.pending.discard(member_id)
        self.unsynced.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return
        if member.instance_id is not None and self.instances.get(member.instance_id) == member_id:
            del self.instances[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def replace_static(self, old_id: str, new_id: str) -> ClassicMember:
        """Give the static member `old_id` the new member id; it keeps its assignment."""
        member = self.members[old_id]
        # The order of members must not change: the next leader is the first member.
        self.members = {
            (new_id if member_id == old_id else member_id): other for member_id, other in self.members.items()
        }
        member.member_id = new_id
        if member.instance_id is not None:
            self.instances[member.instance_id] = new_id
        if self.leader == old_id:
            self.leader = new_id
        return member

    def elect_joined_leader(self) -> bool:
        """Make a member that has rejoined the leader; return False if no member has."""
        leader = self.members.get(self.leader or "")
        if leader is not None and leader.joining is not None:
            return True
        joined = next((member for member in self.members.values() if member.joining is not None), None)
        if joined is not None:
            self.leader = joined.member_id
        return joined is not None

    def begin_generation(self) -> None:
        """Begin the next generation: choose its protocol and wait for the leader's assignment."""
        self.generation += 1
        self.protocol_name = self.choose_protocol()
        self.subscribed = self._read_subscriptions()
        self.move_to(ClassicState.COMPLETING)

    def _read_subscriptions(self) -> frozenset[str] | None:
        if not self.members:
            return frozenset()
        if not self.uses_consumer_protocol or self.protocol_name is None:
            return None
        try:
            return frozenset(
                topic
                for member in self.members.values()
                for topic in decode_subscription(member.metadata(self.protocol_name)).topics
            )
        except ProtocolError:
            return None  # the members use the protocol type "consumer" with a format of their own

    def record(self, assignments: dict[str, bytes], now_ms: int) -> records.GroupRecord:
        return records.GroupRecord(
            records.GroupMetadataKey(group=self.group_id),
            records.GroupMetadataValue(
                protocol_type=self.protocol_type or "",
                generation=self.generation,
                protocol=self.protocol_name,
                leader=self.leader,
                current_state_timestamp=now_ms,
                members=[
                    records.MemberMetadata(
                        member_id=member.member_id,
                        group_instance_id=member.instance_id,
                        client_id=member.client_id,
                        client_host=member.client_host,
                        rebalance_timeout=member.rebalance_timeout_ms,
                        session_timeout=member.session_timeout_ms,
                        subscription=member.metadata(self.protocol_name),
                        assignment=assignments.get(member.member_id, b""),
                    )
                    for member in self.members.values()
                ],
            ),
        )

    def empty_record(self, now_ms: int) -> records.GroupRecord:
        """Return the record of the empty group, in a new generation, so that former members are refused."""
        return ClassicGroup(
            self.group_id, generation=self.generation + 1, protocol_type=self.protocol_type
        ).record({}, now_ms)

    def tombstones(self) -> list[records.GroupRecord]:
        return [records.GroupRecord(records.GroupMetadataKey(group=self.group_id), None)]

    def apply(self, key: Message, value: Message | None) -> None:
        """Replace the state by the record's; known members keep what a record does not contain."""
        assert isinstance(value, records.GroupMetadataValue), key
        self.protocol_type = value.protocol_type or None
        self.generation = value.generation
        self.protocol_name = value.protocol
        self.leader = value.leader
        self.state_timestamp_ms = value.current_state_timestamp
        previous, self.members, self.instances = self.members, {}, {}
        for recorded in value.members:
            timeout_ms = recorded.rebalance_timeout
            member = ClassicMember(
                member_id=recorded.member_id,
                instance_id=recorded.group_instance_id,
                client_id=recorded.client_id,
                client_host=recorded.client_host,
                session_timeout_ms=recorded.session_timeout,
                rebalance_timeout_ms=timeout_ms if timeout_ms >= 0 else recorded.session_timeout,
                protocols=((value.protocol or "", recorded.subscription),),
            )
            known = previous.get(recorded.member_id)
            if known is not None and (value.protocol, recorded.subscription) in known.protocols:
                known.session_timeout_ms = member.session_timeout_ms
                known.rebalance_timeout_ms = member.rebalance_timeout_ms
                known.client_id, known.client_host = member.client_id, member.client_host
                member = known
            member.assignment = recorded.assignment
            self.members[member.member_id] = member
            if member.instance_id is not None:
                self.instances[member.instance_id] = member.member_id
        self.move_to(ClassicState.STABLE if self.members else ClassicState.EMPTY)
        self.subscribed = self._read_subscriptions()
