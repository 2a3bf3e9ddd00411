"""Members of the classic protocol: they join, the leader among them assigns, all sync."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from compat.group_conversations.offsets import Positions, topics_to_commit
from compat.group_conversations.talk import Call, Talk
from headrace.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    encode_assignment,
    encode_subscription,
)
from headrace.protocol.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.schema.consumer_protocol_assignment import TopicPartition as AssignedPartitions
from headrace.protocol.schema.consumer_protocol_subscription import TopicPartition as OwnedPartitions
from headrace.protocol.schema.heartbeat import HeartbeatRequest
from headrace.protocol.schema.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.protocol.schema.leave_group import LeaveGroupRequest, MemberIdentity
from headrace.protocol.schema.offset_commit import OffsetCommitRequest
from headrace.protocol.schema.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

LONG_MS: Final = 30_000
"""A timeout that no conversation waits for."""

Protocols = Sequence[tuple[str, bytes]]


def subscription(*topics: str, version: int = 0, **more: Any) -> bytes:
    """What a consumer says about itself when it joins."""
    return encode_subscription(ConsumerProtocolSubscription(topics=topics, **more), version)


def assignment(**topics: Sequence[int]) -> bytes:
    """What a leader assigns to a consumer."""
    parts = [AssignedPartitions(topic=topic, partitions=which) for topic, which in topics.items()]
    return encode_assignment(ConsumerProtocolAssignment(assigned_partitions=parts), 0)


def owned(**topics: Sequence[int]) -> list[OwnedPartitions]:
    """What a cooperative consumer says that it owns."""
    return [OwnedPartitions(topic=topic, partitions=which) for topic, which in topics.items()]


class Member:
    """A member that knows what it was told: its id, the generation. Every verb takes fields to change."""

    def __init__(
        self,
        talk: Talk,
        name: str,
        group: str = "g",
        *,
        instance: str | None = None,
        protocols: Protocols | None = None,
        session_ms: int = LONG_MS,
        rebalance_ms: int = LONG_MS,
    ) -> None:
        self.talk = talk
        self.name = name
        self.group = talk.called(group)
        self.instance = instance
        self.protocols: Protocols = [("range", subscription("three"))] if protocols is None else protocols
        self.session_ms = session_ms
        self.rebalance_ms = rebalance_ms
        self.member_id = ""
        self.generation = -1
        self.protocol: str | None = None

    def join_call(self, **changes: Any) -> Call:
        """Send a JoinGroup that may have to wait for others."""
        return self.talk.call(self.name, JoinGroupRequest(**(self._as_joining() | changes)), self._hear_join)

    def join(self, **changes: Any) -> Any:
        return self.join_call(**changes).answer()

    def enter_call(self) -> Call:
        """Join for the first time: from v4 on a member is told its id first, and asked to come again."""
        if self.talk.version_of(JoinGroupRequest) >= 4 and self.instance is None:
            self.join()
        return self.join_call()

    def enter(self) -> Any:
        return self.enter_call().answer()

    def sync_call(self, assignments: Mapping["Member", bytes] | None = None, **changes: Any) -> Call:
        parts = [
            SyncGroupRequestAssignment(member_id=member.member_id, assignment=assignment)
            for member, assignment in (assignments or {}).items()
        ]
        protocol = {"protocol_type": "consumer", "protocol_name": self.protocol}
        fields = self._identity() | protocol | {"assignments": parts}
        return self.talk.call(self.name, SyncGroupRequest(**(fields | changes)))

    def sync(self, assignments: Mapping["Member", bytes] | None = None, **changes: Any) -> Any:
        return self.sync_call(assignments, **changes).answer()

    def heartbeat(self, **changes: Any) -> Any:
        return self._ask(HeartbeatRequest(**(self._identity() | changes)))

    def leave(self, **changes: Any) -> Any:
        who = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance)
        fields = {"group_id": self.group, "member_id": self.member_id, "members": [who]}
        return self._ask(LeaveGroupRequest(**(fields | changes)))

    def commit(self, positions: Positions, **changes: Any) -> Any:
        fields: dict[str, Any] = {
            "group_id": self.group,
            "generation_id_or_member_epoch": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            "topics": topics_to_commit(positions, self.talk.topic_ids),
        }
        return self._ask(OffsetCommitRequest(**(fields | changes)))

    def _as_joining(self) -> dict[str, Any]:
        return {
            "group_id": self.group,
            "session_timeout_ms": self.session_ms,
            "rebalance_timeout_ms": self.rebalance_ms,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            "protocol_type": "consumer",
            "protocols": protocols_of(*self.protocols),
        }

    def _identity(self) -> dict[str, Any]:
        return {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
        }

    def _hear_join(self, answer: Any) -> Any:
        if answer.error_code in {ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED}:
            self.member_id = answer.member_id
            self.talk.names.members.setdefault(self.member_id, self.name)
        if answer.error_code == ErrorCode.NONE:
            self.generation, self.protocol = answer.generation_id, answer.protocol_name
        return answer

    def _ask(self, request: Message) -> Any:
        return self.talk.ask(self.name, request)


def protocols_of(*named: tuple[str, bytes]) -> list[JoinGroupRequestProtocol]:
    return [JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in named]


def assembled(leader: Member, *others: Member) -> None:
    """Everybody joins; the generation waits for its leader's assignment."""
    leader.enter()
    calls = [each.enter_call() for each in others]
    if others:
        leader.join()
    for call in calls:
        call.answer()


def stable(leader: Member, *others: Member) -> None:
    """Everybody is in one generation and has an assignment."""
    assembled(leader, *others)
    calls = [each.sync_call() for each in others]
    leader.sync({each: f"for {each.name}".encode() for each in (leader, *others)})
    for call in calls:
        call.answer()
