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


class InvalidGroupId(GroupError, code=ErrorCode.INVALID_GROUP_ID):
    """The group id is empty."""


class GroupIdNotFound(GroupError, code=ErrorCode.GROUP_ID_NOT_FOUND):
    """There is no group of this name, or it has another type."""


class GroupNotEmpty(GroupError, code=ErrorCode.NON_EMPTY_GROUP):
    """The group has members."""


class GroupIsFull(GroupError, code=ErrorCode.GROUP_MAX_SIZE_REACHED):
    """The group has group.max.size members already."""


class GroupTooLarge(GroupError):
    """The group's record does not fit in a batch."""


class UnknownMember(GroupError, code=ErrorCode.UNKNOWN_MEMBER_ID):
    """The group has no such member: the client rejoins with an empty member id."""


class MemberIdRequired(GroupError, code=ErrorCode.MEMBER_ID_REQUIRED):
    """A new member has to rejoin with the member id of this response."""

    def __init__(self, member_id: str) -> None:
        super().__init__(f"rejoin with member id {member_id}")
        self.of(member_id)


class FencedInstance(GroupError, code=ErrorCode.FENCED_INSTANCE_ID):
    """Another member has taken over the instance id."""


class UnreleasedInstance(GroupError, code=ErrorCode.UNRELEASED_INSTANCE_ID):
    """The instance id belongs to a member that has not left."""


class IllegalGeneration(GroupError, code=ErrorCode.ILLEGAL_GENERATION):
    """The request names another generation than the group is in."""


class RebalanceInProgress(GroupError, code=ErrorCode.REBALANCE_IN_PROGRESS):
    """The group is rebalancing: the client rejoins."""


class InconsistentProtocol(GroupError, code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL):
    """The member supports no protocol that all members support."""


class InvalidSessionTimeout(GroupError, code=ErrorCode.INVALID_SESSION_TIMEOUT):
    """The session timeout is outside group.min.session.timeout.ms and group.max.session.timeout.ms."""


class FencedMemberEpoch(GroupError, code=ErrorCode.FENCED_MEMBER_EPOCH):
    """The member epoch is wrong: the member gives up its partitions and rejoins."""


class StaleMemberEpoch(GroupError, code=ErrorCode.STALE_MEMBER_EPOCH):
    """The member epoch is out of date: the member sends a heartbeat and retries."""


class UnsupportedAssignor(GroupError, code=ErrorCode.UNSUPPORTED_ASSIGNOR):
    """There is no assignor of this name."""


class InvalidGroupRequest(GroupError, code=ErrorCode.INVALID_REQUEST):
    """A field of the request is missing or contradicts another one."""


class UnsupportedByGroup(GroupError, code=ErrorCode.UNSUPPORTED_VERSION):
    """The API version is too old for this type of group."""
