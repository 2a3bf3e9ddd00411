"""Errors of the group coordinator. Each becomes an error code in a response; the request changes nothing."""

from typing import Self

from headrace.coordinators.errors import CoordinatorError
from headrace.protocol.errors import ErrorCode


class GroupError(CoordinatorError):
    """The group coordinator refuses a request. The message ends with Kafka's name of the error."""

    member_id: str | None = None  # for the response to a JoinGroup, if it differs from the request's

    def __init__(self, message: str) -> None:
        super().__init__(f"{message} ({self.code.name})")

    def of(self, member_id: str) -> Self:
        """Set the member id of the response, and return the error."""
        self.member_id = member_id
        return self


class InvalidGroupId(GroupError):
    """The group id is empty."""

    code = ErrorCode.INVALID_GROUP_ID


class GroupIdNotFound(GroupError):
    """There is no group of this name, or it has another type."""

    code = ErrorCode.GROUP_ID_NOT_FOUND


class GroupNotEmpty(GroupError):
    """The group has members."""

    code = ErrorCode.NON_EMPTY_GROUP


class GroupIsFull(GroupError):
    """The group has group.max.size members already."""

    code = ErrorCode.GROUP_MAX_SIZE_REACHED


class GroupTooLarge(GroupError):
    """The group's record does not fit in a batch."""


class UnknownMember(GroupError):
    """The group has no such member: the client rejoins with an empty member id."""

    code = ErrorCode.UNKNOWN_MEMBER_ID


class MemberIdRequired(GroupError):
    """A new member has to rejoin with the member id of this response."""

    code = ErrorCode.MEMBER_ID_REQUIRED

    def __init__(self, member_id: str) -> None:
        super().__init__(f"rejoin with member id {member_id}")
        self.of(member_id)


class FencedInstance(GroupError):
    """Another member has taken over the instance id."""

    code = ErrorCode.FENCED_INSTANCE_ID


class UnreleasedInstance(GroupError):
    """The instance id belongs to a member that has not left."""

    code = ErrorCode.UNRELEASED_INSTANCE_ID


class IllegalGeneration(GroupError):
    """The request names another generation than the group is in."""

    code = ErrorCode.ILLEGAL_GENERATION


class RebalanceInProgress(GroupError):
    """The group is rebalancing: the client rejoins."""

    code = ErrorCode.REBALANCE_IN_PROGRESS


class InconsistentProtocol(GroupError):
    """The member supports no protocol that all members support."""

    code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


class InvalidSessionTimeout(GroupError):
    """The session timeout is outside group.min.session.timeout.ms and group.max.session.timeout.ms."""

    code = ErrorCode.INVALID_SESSION_TIMEOUT


class FencedMemberEpoch(GroupError):
    """The member epoch is wrong: the member gives up its partitions and rejoins."""

    code = ErrorCode.FENCED_MEMBER_EPOCH


class StaleMemberEpoch(GroupError):
    """The member epoch is out of date: the member sends a heartbeat and retries."""

    code = ErrorCode.STALE_MEMBER_EPOCH


class UnsupportedAssignor(GroupError):
    """There is no assignor of this name."""

    code = ErrorCode.UNSUPPORTED_ASSIGNOR


class InvalidGroupRequest(GroupError):
    """A field of the request is missing or contradicts another one."""

    code = ErrorCode.INVALID_REQUEST


class UnsupportedByGroup(GroupError):
    """The API version is too old for this type of group."""

    code = ErrorCode.UNSUPPORTED_VERSION
