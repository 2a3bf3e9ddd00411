"""What a coordinator decides: records to write, then answers to give."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from headrace.group.errors import GroupError
from headrace.group.records import GroupRecord

Waiter = Any
"""Whoever waits for an answer. A coordinator keeps it, gives it back with the answer, and never looks in."""


class Client(NamedTuple):
    """Who sent a request, as `describe` shows it."""

    client_id: str
    host: str


class Joined(NamedTuple):
    """The answer to a JoinGroup: the member is in this generation. Only the leader sees the others."""

    member_id: str
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str
    members: Sequence["JoinedMember"] = ()
    skip_assignment: bool = False


class JoinedMember(NamedTuple):
    """A member as the leader sees it, with what it can read."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class Synced(NamedTuple):
    """The answer to a SyncGroup: what the member is to read."""

    protocol_type: str | None
    protocol_name: str | None
    assignment: bytes


Answer = Joined | Synced | GroupError


@dataclass(slots=True)
class Decision:
    """Write `records`, all or none; apply them; when they are committed, let the `replies` go."""

    now_ms: int  # the moment it is made at
    records: list[GroupRecord] = field(default_factory=list)
    replies: list[tuple[Waiter, Answer]] = field(default_factory=list)
    answer: Any = None  # to whoever asked, where nobody has to wait for others


class Timed(Enum):
    """What a coordinator does when nothing happens."""

    SESSION = "a member that is silent is removed"
    REBALANCE = "a classic group that was a consumer group has everybody join again"
    JOIN = "a classic group that comes together goes on without those who did not join"
    SYNC = "members of a classic group that did not sync are removed"
    REVOCATION = "a member that does not give up its partitions is removed"
    REJOIN = "a classic member of a consumer group that does not join again is removed"
    RESYNC = "a classic member of a consumer group that does not sync is removed"


class Timer(NamedTuple):
    """The name of a deadline."""

    what: Timed
    group_id: str
    member_id: str = ""
