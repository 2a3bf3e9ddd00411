"""Asking whoever has the answer now: found anew when it has moved, and asked again, for so long.

Groups are asked of their coordinators, and offsets of leaders; both move when a broker goes or comes back.
Pure but for the pauses: `live_brokers` does the asking.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 0.4
LEAST: Final = 2  # times that one begins once more, however long the first took

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")
Where = TypeVar("Where", bound=Hashable)


class Again(NamedTuple):
    """There is no answer now, and why; `soon` if there may be one in a moment."""

    why: str
    soon: bool = True


class Given(NamedTuple, Generic[Answer]):
    """Nobody has to be asked: this is the answer."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Settled(Generic[Key, Answer]):
    """The answers that there are, and for each that is missing why it is."""

    answers: dict[Key, Answer]
    missing: dict[Key, Again]


class Patient(Protocol):
    """Says whether to go on, after a pause."""

    def rest(self) -> bool: ...


class Patience:
    """Pauses that become longer, until the time for trying again is over."""

    def __init__(self, seconds: float, *, retries_s: float | None = None) -> None:
        """So long for everything, and so long for beginning once more."""
        self._begun_s = time.monotonic()
        self._seconds = seconds
        self._retries_s = seconds if retries_s is None else retries_s
        self._pause_s = FIRST_PAUSE_S
        self._rests = 0

    @property
    def left_s(self) -> float:
        return self._begun_s + self._seconds - time.monotonic()

    def rest(self) -> bool:
        over_s = time.monotonic() - self._begun_s + self._pause_s
        if over_s > self._seconds or (over_s > self._retries_s and self._rests >= LEAST):
            return False
        self._rests += 1
        time.sleep(self._pause_s)
        self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)
        return True


def settle(
    keys: Iterable[Key],
    *,
    locate: Callable[[list[Key]], Mapping[Key, Where | Again | Given[Answer]]],
    ask: Callable[[Mapping[Where, list[Key]]], Mapping[Key, Answer | Again]],
    patience: Patient,
    known: Mapping[Key, Where] | None = None,
) -> Settled[Key, Answer]:
    """Ask about every key, there where `locate` finds it, until all is answered or patience is over.

    What is `known` is not located before it has turned out to be wrong.
    """
    answers: dict[Key, Answer] = {}
    missing = dict.fromkeys(keys, Again("nobody was asked"))
    at: dict[Key, Where | Again | Given[Answer]] = {
        key: where for key, where in (known or {}).items() if key in missing
    }
    while missing:
        if unknown := [key for key in missing if key not in at]:
            at |= locate(unknown)
        asked: dict[Where, list[Key]] = defaultdict(list)
        found: dict[Key, Answer | Again] = {}
        for key in missing:
            where = at[key]
            if isinstance(where, Again):
                found[key] = where
            elif isinstance(where, Given):
                found[key] = where.answer
            else:
                asked[where].append(key)
        found |= ask(asked)
        hopeful = False
        for key, answer in found.items():
            if isinstance(answer, Again):
                missing[key] = answer
                hopeful |= answer.soon
            else:
                answers[key] = answer
                del missing[key]
        at = {}
        if not hopeful or not patience.rest():
            break
    return Settled(answers, missing)
