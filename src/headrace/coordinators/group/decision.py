"""The replies and timers of the group coordinator."""

from collections.abc import Callable, Sequence
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
    """The key of a deadline."""

    kind: TimerKind
    group_id: str
    member_id: str = ""
