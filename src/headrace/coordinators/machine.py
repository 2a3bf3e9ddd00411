"""The interface between a coordinator's state machine, which is pure, and the runtime that drives it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Final, Generic, TypeVar

from headrace.coordinators.deadlines import Deadlines
from headrace.coordinators.decision import Decision
from headrace.coordinators.topics import Topics

Record = TypeVar("Record")

NO_PRODUCER: Final = -1
_NO_TOPICS: Final = Topics()


class CoordinatorMachine(ABC, Generic[Record]):
    """The state of one partition of an internal topic, and the decisions about it.

    A decision changes no durable state: `apply` does, with records that are in the log. Loading a partition
    calls `apply` only, so that a new leader reaches the state of the old one.
    """

    deadlines: Deadlines[Any]
    """When `expire` has something to decide."""

    @staticmethod
    @abstractmethod
    def encode(record: Record) -> tuple[bytes, bytes | None]:
        """Return key and value of `record`; a value of None is a tombstone."""

    @staticmethod
    @abstractmethod
    def decode(key: bytes | None, value: bytes | None) -> Record | None:
        """Return the record with this key and value, or None if this version has no use for it."""

    @staticmethod
    @abstractmethod
    def is_replaced_by_later(key: bytes) -> bool:
        """Return whether a later record of `key` makes this one irrelevant, so that loading may skip it."""

    @abstractmethod
    def apply(self, record: Record, producer_id: int = NO_PRODUCER) -> None:
        """Change the state as `record` says; one of a transaction takes effect when that is committed."""

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply or drop the records of the producer's transaction: its marker is in the log."""

    @abstractmethod
    def expire(self, now_ms: int) -> Iterator[Decision[Record]]:
        """Yield what is due. Each decision is carried out before the next one is made."""

    def start(self, now_ms: int) -> None:
        """Set the deadlines of a state that has just been loaded."""

    def stop(self, now_ms: int) -> Decision[Record]:
        """Return a decision with a reply for every request that waits: another broker takes over."""
        return Decision(now_ms)

    follows_topics: ClassVar[bool] = False
    """Whether `topics_changed` and `topic_deleted` are called."""

    topics: Topics = _NO_TOPICS
    """The topics of the cluster when the latest decision was made."""

    def topics_changed(self, topics: Topics) -> None:
        """Use other topics from the next decision on: some were created, deleted, or have grown."""
        self.topics = topics

    def topic_deleted(self, name: str, now_ms: int) -> Decision[Record]:
        """Delete what the state has about a deleted topic; a later topic of that name is another one."""
        del name
        return Decision(now_ms)
