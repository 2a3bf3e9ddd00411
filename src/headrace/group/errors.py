"""What a group says no with. Each is a code in a reply; whoever gets one has changed nothing."""

from typing import Self

from headrace.protocol.errors import ErrorCode, KafkaError


class GroupError(KafkaError):
    """A request that the group, or its coordinator, does not grant."""

    member_id: str | None = None  # for a JoinGroup: who is refused, if that is not who asked

    def of(self, member_id: str) -> Self:
        self.member_id = member_id
        return self


class InvalidGroupId(GroupError):
    """A group must have a name."""

    code = ErrorCode.INVALID_GROUP_ID


class GroupIdNotFound(GroupError):
    """There is no group of this name, or not of this kind."""

    code = ErrorCode.GROUP_ID_NOT_FOUND


class GroupNotEmpty(GroupError):
    """The group has members."""

    code = ErrorCode.NON_EMPTY_GROUP


class GroupIsFull(GroupError):
    """The group has as many members as it may."""

    code = ErrorCode.GROUP_MAX_SIZE_REACHED


class GroupTooLarge(GroupError):
    """What is to be remembered of the group does not fit in a batch."""


class UnknownMember(GroupError):
    """The group has no such member; the client is to join again."""

    code = ErrorCode.UNKNOWN_MEMBER_ID


class MemberIdRequired(GroupError):
    """Join again, with the id that was given: only then does the member count."""

    code = ErrorCode.MEMBER_ID_REQUIRED

    def __init__(self, member_id: str) -> None:
        super().__init__(f"join again as {member_id}")
        self.of(member_id)


class FencedInstance(GroupError):
    """Another member has taken over the instance id."""

    code = ErrorCode.FENCED_INSTANCE_ID


class UnreleasedInstance(GroupError):
    """The instance id belongs to a member that has not left."""

    code = ErrorCode.UNRELEASED_INSTANCE_ID


class IllegalGeneration(GroupError):
    """The member's generation is not the group's."""

    code = ErrorCode.ILLEGAL_GENERATION


class RebalanceInProgress(GroupError):
    """The group is coming together anew; the client is to join again."""

    code = ErrorCode.REBALANCE_IN_PROGRESS


class InconsistentProtocol(GroupError):
    """The member has no protocol in common with the group."""

    code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


class InvalidSessionTimeout(GroupError):
    """The session timeout is out of the bounds that the broker sets."""

    code = ErrorCode.INVALID_SESSION_TIMEOUT


class FencedMemberEpoch(GroupError):
    """The member's epoch is not the one its coordinator knows; it is to give up all and join again."""

    code = ErrorCode.FENCED_MEMBER_EPOCH


class StaleMemberEpoch(GroupError):
    """The member's epoch is out of date; it is to heartbeat and try again."""

    code = ErrorCode.STALE_MEMBER_EPOCH


class UnsupportedAssignor(GroupError):
    """There is no assignor of this name."""

    code = ErrorCode.UNSUPPORTED_ASSIGNOR


class InvalidRegularExpression(GroupError):
    """RE2 does not understand the expression."""

    code = ErrorCode.INVALID_REGULAR_EXPRESSION


class InvalidGroupRequest(GroupError):
    """The request lacks something, or contradicts itself."""

    code = ErrorCode.INVALID_REQUEST


class UnsupportedByGroup(GroupError):
    """The API's version is too old for this kind of group."""

    code = ErrorCode.UNSUPPORTED_VERSION


class CoordinatorLoading(GroupError):
    """The group's records are being read."""

    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class CoordinatorNotAvailable(GroupError):
    """The group's records cannot be read or written at the moment."""

    code = ErrorCode.COORDINATOR_NOT_AVAILABLE


class NotCoordinator(GroupError):
    """Another broker coordinates this group."""

    code = ErrorCode.NOT_COORDINATOR
