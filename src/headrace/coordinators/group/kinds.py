"""What every kind of group offers to the coordinator, which has one table of them.

    classic     ClassicGroup     ClassicGroupKind     classic.py, classic_protocol.py
    consumer    ConsumerGroup    ConsumerGroupKind    consumer.py, classic_members.py, consumer_protocol.py

A group is the state: records change it, and it knows the rules that need nothing but the state. A kind makes
the decisions about all groups of its type. Requests of a kind's own protocol, such as ConsumerGroupHeartbeat,
are methods of the coordinator; those below reach groups of any kind.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Protocol, TypeVar

from headrace.coordinators.deadlines import Deadlines
from headrace.coordinators.decision import Waiter
from headrace.coordinators.errors import CoordinatorError
from headrace.coordinators.group.decision import Decision, Join, Leaving, Sync, Timer
from headrace.coordinators.group.errors import FencedInstance, GroupError, UnknownMember
from headrace.coordinators.group.limits import ConsumerTimeouts, GroupLimits
from headrace.coordinators.group.offsets import Commit
from headrace.coordinators.group.records import GroupRecord
from headrace.coordinators.topics import Topics
from headrace.protocol.message import Message

_PREFIX_CHARS: Final = 255  # how much of the client id or instance id a member id begins with


@dataclass(slots=True)
class GroupContext:
    """What the kinds of groups of one coordinator share: settings, topics and deadlines.

    `new_id` returns a unique id. `timeouts` are the timeouts that consumer groups override, by group id;
    the owner of the mapping may change it at any time.
    """

    limits: GroupLimits
    new_id: Callable[[], str]
    timeouts: Mapping[str, ConsumerTimeouts]
    topics: Topics = field(default_factory=Topics)
    deadlines: Deadlines[Timer] = field(default_factory=Deadlines)

    def new_member_id(self, prefix: str) -> str:
        return f"{prefix[:_PREFIX_CHARS]}-{self.new_id()}"


class Group(Protocol):
    type_name: ClassVar[str]
    """The type of the group as ListGroups has it."""
    metadata_key: ClassVar[type[Message]]
    """The key of the record whose tombstone deletes the group."""
    record_keys: ClassVar[Collection[type[Message]]]
    """The keys of all records of groups of this type."""

    @property
    def group_id(self) -> str: ...

    @property
    def protocol_type(self) -> str | None: ...

    @property
    def state_name(self) -> str:
        """The state, by Kafka's name."""

    @property
    def members(self) -> Mapping[str, Any]: ...

    @property
    def instances(self) -> Mapping[str, str]:
        """The member ids of static members by instance id."""

    @property
    def is_empty(self) -> bool: ...

    @property
    def is_unused(self) -> bool:
        """Whether the group is empty, and no member is about to join."""

    def check_commit(self, commit: Commit) -> None:
        """Raise unless the member may commit offsets, or the group is empty and the request names none."""

    def check_transactional_commit(self, commit: Commit) -> None:
        """Raise if the request names a member or a generation, and they are not current."""

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Raise unless the member may fetch the group's offsets."""

    def check_delete_offsets(self) -> None:
        """Raise if it is not known whether members read the topics whose offsets are to be deleted."""

    def is_subscribed(self, topic: str) -> bool: ...

    def offset_expiration_base_ms(self, committed_ms: int) -> int | None:
        """Return when the retention of an offset begins; None if the offset does not expire at present."""

    def tombstones(self) -> list[GroupRecord]:
        """Return the tombstones that delete the group; the one with `metadata_key` comes last."""

    def apply(self, key: Message, value: Message | None) -> None:
        """Change the state as a record with one of `record_keys` says."""


def check_member(group: Group, member_id: str, instance_id: str | None) -> None:
    """Raise if the member is unknown or its instance id belongs to another member."""
    if instance_id is not None:
        holder = group.instances.get(instance_id)
        if holder is None:
            raise UnknownMember(f"group {group.group_id!r} has no static member {instance_id!r}")
        if holder != member_id:
            raise FencedInstance(
                f"instance id {instance_id!r} belongs to member {holder}, not to {member_id}"
            )
    if member_id not in group.members:
        raise UnknownMember(f"group {group.group_id!r} has no member {member_id!r}")


Left = list[GroupError | None]
"""An error or None for each member that a LeaveGroup names."""
G_contra = TypeVar("G_contra", bound=Group, contravariant=True)


class GroupKind(Protocol[G_contra]):
    group_type: ClassVar[type[Any]]
    """The class of the groups, made from a group id."""

    def join(self, group: G_contra, join: Join, waiter: Waiter, decision: Decision) -> None:
        """Answer a JoinGroup, now or later."""

    def sync(self, group: G_contra, sync: Sync, waiter: Waiter, decision: Decision) -> None:
        """Answer a SyncGroup, now or later."""

    def heartbeat(
        self, group: G_contra, member_id: str, instance_id: str | None, generation: int, now_ms: int
    ) -> None:
        """Extend the member's session; raise RebalanceInProgress if it has to rejoin."""

    def leave(self, group: G_contra, leaving: Sequence[Leaving], decision: Decision) -> Left:
        """Remove members."""

    def committed(self, group: G_contra, member_id: str, now_ms: int) -> None:
        """Act on an OffsetCommit of a member, which counts as a heartbeat in some groups."""

    def expire(self, group: G_contra, timer: Timer, decision: Decision) -> None:
        """Act on a deadline that has passed."""

    def start(self, group: G_contra, now_ms: int) -> None:
        """Start the session timeouts of a group that was just loaded."""

    def stop(self, group: G_contra, error: CoordinatorError, decision: Decision) -> None:
        """Answer the group's waiting requests with `error`, and cancel its timers."""
