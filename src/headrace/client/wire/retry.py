"""The retry loops of the wire client, and their one backoff policy.

`retry` repeats one call. `ask_owners` asks about many keys (groups of their coordinators, partitions of their
leaders) and looks for the owner again when it has moved.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from headrace.client.errors import Retriable, Unreachable, error_name, raise_for
from headrace.protocol.errors import ErrorCode

FIRST_BACKOFF_S: Final = 0.05
MAX_BACKOFF_S: Final = 0.5
MIN_RETRIES: Final = 2  # however long the first attempt took

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")
Owner = TypeVar("Owner", bound=Hashable)


class Backoff:
    """Pauses that double up to MAX_BACKOFF_S, until the time for another attempt is over."""

    def __init__(self, timeout_s: float, *, retries_s: float | None = None) -> None:
        """`timeout_s` limits all attempts together; `retries_s`, if less, limits when one may start."""
        self.timeout_s = timeout_s
        self._started_s = time.monotonic()
        self._retries_s = timeout_s if retries_s is None else retries_s
        self._pause_s = FIRST_BACKOFF_S
        self._retries = 0

    @property
    def left_s(self) -> float:
        return self._started_s + self.timeout_s - time.monotonic()

    def rest(self) -> bool:
        """Sleep until the next attempt is due, and return True; return False if it would be too late."""
        at_s = time.monotonic() - self._started_s + self._pause_s
        if at_s > self.timeout_s or (at_s > self._retries_s and self._retries >= MIN_RETRIES):
            return False
        self._retries += 1
        time.sleep(self._pause_s)
        self._pause_s = min(self._pause_s * 2, MAX_BACKOFF_S)
        return True


def retry(
    attempt: Callable[[], Answer],
    backoff: Backoff,
    *,
    on: type[Unreachable] = Retriable,
    before_retry: Callable[[], None] = lambda: None,
) -> Answer:
    """Return what `attempt` returns, repeated while it raises `on`; Unreachable when the time is over."""
    while True:
        try:
            return attempt()
        except on as error:
            before_retry()
            if not backoff.rest():
                raise Unreachable(f"{error} (for {backoff.timeout_s:g} s)") from error


class Unanswered(NamedTuple):
    """Why there is no answer for a key; `retriable` says whether another attempt may bring one."""

    why: str
    retriable: bool = True


def unanswered(code: int, message: str | None, what: str, where: object) -> Unanswered:
    """Return a retriable error as the reason to retry; raise ClientError for another error."""
    if not ErrorCode(code).retriable:
        raise_for(code, message, what)
    return Unanswered(f"{where} answers {message or error_name(code)}")


class Known(NamedTuple, Generic[Answer]):
    """The answer for a key, if locating its owner has shown it already."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Answers(Generic[Key, Answer]):
    """The answers by key, and for each key without an answer the reason."""

    answers: dict[Key, Answer]
    missing: dict[Key, Unanswered]

    def complete(self) -> dict[Key, Answer]:
        """Return the answers; Unreachable if one is missing."""
        for key, missing in self.missing.items():
            raise Unreachable(f"{key}: {missing.why}")
        return self.answers


def ask_owners(
    keys: Iterable[Key],
    *,
    locate: Callable[[list[Key]], Mapping[Key, Owner | Unanswered | Known[Answer]]],
    ask: Callable[[Mapping[Owner, list[Key]]], Mapping[Key, Answer | Unanswered]],
    backoff: Backoff,
    known: Mapping[Key, Owner] | None = None,
) -> Answers[Key, Answer]:
    """Ask the owner of every key, and locate and ask again for keys without an answer, until time is over.

    Owners that are `known` are located only after they failed to answer.
    """
    answers: dict[Key, Answer] = {}
    missing = dict.fromkeys(keys, Unanswered("no broker was asked"))
    owners: dict[Key, Owner | Unanswered | Known[Answer]] = {
        key: owner for key, owner in (known or {}).items() if key in missing
    }
    while missing:
        if unknown := [key for key in missing if key not in owners]:
            owners |= locate(unknown)
        by_owner: dict[Owner, list[Key]] = defaultdict(list)
        found: dict[Key, Answer | Unanswered] = {}
        for key in missing:
            owner = owners[key]
            if isinstance(owner, Unanswered):
                found[key] = owner
            elif isinstance(owner, Known):
                found[key] = owner.answer
            else:
                by_owner[owner].append(key)
        found |= ask(by_owner)
        for key, answer in found.items():
            if isinstance(answer, Unanswered):
                missing[key] = answer
            else:
                answers[key] = answer
                del missing[key]
        owners = {}
        if not any(each.retriable for each in missing.values()) or not backoff.rest():
            break
    return Answers(answers, missing)
