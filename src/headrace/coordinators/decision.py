"""What a coordinator decides: records to append, and replies to send once the records are committed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

Record = TypeVar("Record")

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
