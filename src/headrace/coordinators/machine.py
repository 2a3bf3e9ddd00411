"""The interface between a coordinator's state machine, which is pure, and the runtime that drives it."""

from collections.abc import Iterator
from typing import Any, Final, Protocol, TypeVar

from headrace.coordinators.deadlines import Deadlines
from headrace.coordinators.decision import Decision

Record = TypeVar("Record")

NO_PRODUCER: Final = -1


class CoordinatorMachine(Protocol[Record]):
    """The state of one partition of an internal topic, and the decisions about it.

    A decision changes no durable state: `apply` does, with records that are in the log. Loading a partition
    calls `apply` only, so that a new leader reaches the state of the old one.
    """

    deadlines: Deadlines[Any]
    """When `expire` has something to decide."""

    def encode(self, record: Record) -> tuple[bytes, bytes | None]:
        """Return key and value of `record`; a value of None is a tombstone."""

    def decode(self, key: bytes | None, value: bytes | None) -> Record | None:
        """Return the record with this key and value, or None if this version has no use for it."""

    def is_replaced_by_later(self, key: bytes) -> bool:
        """Return whether a later record of `key` makes this one irrelevant, so that loading may skip it."""

    def apply(self, record: Record, producer_id: int = NO_PRODUCER) -> None:
        """Change the state as `record` says; one of a transaction takes effect when that is committed."""

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply or drop the records of the producer's transaction: its marker is in the log."""

    def expire(self, now_ms: int) -> Iterator[Decision[Record]]:
        """Yield what is due. Each decision is carried out before the next one is made."""

    def start(self, now_ms: int) -> None:
        """Set the deadlines of a state that has just been loaded."""

    def stop(self, now_ms: int) -> Decision[Record]:
        """Return a decision with a reply for every request that waits: another broker takes over."""
