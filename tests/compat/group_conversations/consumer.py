"""Members of the new protocol (KIP-848): one heartbeat says and hears everything."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from compat.group_conversations.offsets import Positions, topics_to_commit
from compat.group_conversations.talk import Talk
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from headrace.protocol.schema.offset_commit import OffsetCommitRequest

LONG_MS: Final = 30_000

Partitions = Mapping[str, Sequence[int]]


class Consumer:
    """A member that does as it is told: it owns what it was last assigned, and says so when that changes."""

    def __init__(
        self,
        talk: Talk,
        name: str,
        group: str = "g",
        *,
        topics: Sequence[str] | None = ("three",),
        instance: str | None = None,
        rebalance_ms: int = LONG_MS,
    ) -> None:
        self.talk = talk
        self.name = name
        self.group = talk.called(group)
        self.topics = topics
        self.instance = instance
        self.rebalance_ms = rebalance_ms
        self.member_id = f"id-of-{name}"
        self.epoch = 0
        self.owned: dict[str, list[int]] = {}

    def heartbeat(self, **changes: Any) -> Any:
        """Say that nothing is new, or what `changes` say."""
        fields: dict[str, Any] = {
            "group_id": self.group,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "instance_id": self.instance,
            "topic_partitions": None,
        }
        return self.talk.ask(self.name, ConsumerGroupHeartbeatRequest(**(fields | changes)), self._hear)

    def join(self, **changes: Any) -> Any:
        """Say everything, as a new member has to."""
        self.epoch = 0
        self.owned = {}
        return self.full(**changes)

    def full(self, **changes: Any) -> Any:
        """Say everything, as after a request that got no answer."""
        everything = {
            "rebalance_timeout_ms": self.rebalance_ms,
            "subscribed_topic_names": self.topics,
            "topic_partitions": self.partitions(self.owned),
        }
        return self.heartbeat(**(everything | changes))

    def owns(self, partitions: Partitions | None = None, **changes: Any) -> Any:
        """Say which partitions are owned: by default those that were last assigned."""
        owned = self.owned if partitions is None else partitions
        return self.heartbeat(topic_partitions=self.partitions(owned), **changes)

    def leave(self, **changes: Any) -> Any:
        return self.heartbeat(**({"member_epoch": -1} | changes))

    def commit(self, positions: Positions, **changes: Any) -> Any:
        fields: dict[str, Any] = {
            "group_id": self.group,
            "generation_id_or_member_epoch": self.epoch,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            "topics": topics_to_commit(positions, self.talk.topic_ids),
        }
        return self.talk.ask(self.name, OffsetCommitRequest(**(fields | changes)))

    def partitions(self, named: Partitions) -> list[TopicPartitions]:
        return [
            TopicPartitions(topic_id=self.talk.topic_ids[name], partitions=list(which))
            for name, which in named.items()
        ]

    def _hear(self, answer: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse:
        if answer.error_code != ErrorCode.NONE:
            return answer
        self.epoch = max(answer.member_epoch, 0)
        if answer.member_id is not None and answer.member_id != self.member_id:
            self.member_id = answer.member_id
            self.talk.names.members[self.member_id] = self.name
        if answer.assignment is not None:
            self.owned = self._named(answer.assignment)
        return answer

    def _named(self, assignment: Assignment) -> dict[str, list[int]]:
        names = self.talk.names.topics
        return {names[bytes(each.topic_id)]: list(each.partitions) for each in assignment.topic_partitions}


def settle(*consumers: Consumer) -> None:
    """Do as told until all is done: three rounds are enough to give up, to be given, and to say so."""
    for _ in range(3):
        for each in consumers:
            each.owns()


def shares(*consumers: Consumer) -> str:
    """How many partitions each has; no two have the same."""
    owned = [(topic, part) for each in consumers for topic, parts in each.owned.items() for part in parts]
    assert len(owned) == len(set(owned)), owned
    return " ".join(f"{each.name}:{sum(map(len, each.owned.values()))}" for each in consumers)
