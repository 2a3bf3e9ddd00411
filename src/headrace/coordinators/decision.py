"""What a coordinator decides: records to append, replies to send once they are committed, transitions."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

Record = TypeVar("Record")
State = TypeVar("State", bound=Enum)

Waiter = Any
"""A request that waits for its reply. A state machine keeps it and never looks inside."""


class Producer(NamedTuple):
    """The producer of the transaction that a decision's records are part of."""

    producer_id: int
    epoch: int


@dataclass(slots=True)
class Decision(Generic[Record]):
    """Append `records`, all or none; apply them; when they are committed, send the replies.

    `on_applied` is called right after the records are applied, for state that is not durable and depends on
    them, such as a rebalance of the group that they describe.
    """

    now_ms: int  # when the decision was made
    records: list[Record] = field(default_factory=list)
    replies: list[tuple[Waiter, Any]] = field(default_factory=list)  # to requests that have been waiting
    answer: Any = None  # to the request that this decision is about
    producer: Producer | None = None
    on_applied: Callable[[], None] | None = None


def check_transition(
    legal: Mapping[State, Collection[State]], current: State, target: State, subject: str
) -> None:
    """Fail an assertion unless `legal` lists `target` among the successors of `current`."""
    assert target in legal[current], f"{subject} cannot go from {current.name} to {target.name}"
