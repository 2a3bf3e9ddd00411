"""What is decided: records to be written, and what is answered once they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from headrace.registry.records import Record

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Decision(Generic[Answer]):
    """All records are written or none is. Without any there is nothing to write, and the answer holds."""

    answer: Answer
    records: Sequence[Record] = ()
