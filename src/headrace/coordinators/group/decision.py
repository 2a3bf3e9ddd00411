"""The requests of the classic protocol, the replies to them, and the timers of the group coordinator."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple, TypeAlias

from headrace.coordinators.decision import Decision as CoordinatorDecision
from headrace.coordinators.errors import CoordinatorError
from headrace.coordinators.group.records import GroupRecord


def every_topic(_name: str) -> bool:
    return True


class Client(NamedTuple):
    """The client of a member, as DescribeGroups shows it, and which topics its principal may describe."""

    client_id: str
    host: str
    may_describe: Callable[[str], bool] = every_topic


Protocols = Sequence[tuple[str, bytes]]
"""Protocol names in order of preference, each with the member's metadata."""


class Join(NamedTuple):
    group_id: str
    member_id: str
    instance_id: str | None
    client: Client
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    requires_known_member_id: bool  # answer MEMBER_ID_REQUIRED to a new member; it joins by rejoining
    supports_skipping_assignment: bool


class Sync(NamedTuple):
    """A SyncGroup request; the leader's contains the assignments."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    assignments: Mapping[str, bytes]


class Leaving(NamedTuple):
    """One of the members that a LeaveGroup names."""

    member_id: str
    instance_id: str | None


class Joined(NamedTuple):
    """The reply to a JoinGroup. Only the leader of the group gets the other members."""

    member_id: str
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str
    members: Sequence["JoinedMember"] = ()
    skip_assignment: bool = False


class JoinedMember(NamedTuple):
    """A member as the leader sees it, with its subscription."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class Synced(NamedTuple):
    """The reply to a SyncGroup: the assignment of the member."""

    protocol_type: str | None
    protocol_name: str | None
    assignment: bytes


Answer = Joined | Synced | CoordinatorError


Decision: TypeAlias = CoordinatorDecision[GroupRecord]


class TimerKind(Enum):
    """The timers of a group. The value says what happens when the timer expires."""

    SESSION = "a member without a heartbeat is removed"
    JOIN = "a rebalance of a classic group continues without the members that have not rejoined"
    SYNC = "members of a classic group that have not synced are removed"
    REVOCATION = "a member that has not revoked its partitions is removed"
    REJOIN = "a classic member of a consumer group that has not rejoined is removed"
    RESYNC = "a classic member of a consumer group that has not synced is removed"


class Timer(NamedTuple):
    kind: TimerKind
    group_id: str
    member_id: str = ""
