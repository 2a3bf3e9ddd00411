"""The loop: mutate an input of the corpus, run the target, keep the input if it has reached a new edge."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from fuzzing.coverage import Coverage, TooMuchWork
from fuzzing.mutations import mutate
from fuzzing.targets import Target

LINES: Final = 50_000  # that any input may take
LINES_PER_BYTE: Final = 300
_RECENT: Final = 20  # inputs at the end of the corpus, which half of the mutations start from


@dataclass(slots=True)
class Finding:
    """An input with which a target fails."""

    target: str
    data: bytes
    error: BaseException

    def __str__(self) -> str:
        return f"{self.target}: {type(self.error).__name__}: {self.error} for {self.data.hex()}"


@dataclass(slots=True)
class Report:
    target: str
    executions: int = 0
    edges: int = 0
    corpus: list[bytes] = field(default_factory=list)
    finding: Finding | None = None


def fuzz(
    target: Target, *, executions: int | None = None, seconds: float | None = None, seed: int = 0
) -> Report:
    """Fuzz until the first finding, for a number of executions (which is repeatable) or of seconds."""
    random = Random(seed)
    coverage = Coverage()
    report = Report(target.name)
    until = None if seconds is None else time.monotonic() + seconds
    seeds = [*target.seeds(), b""]
    while report.finding is None:
        if report.executions < len(seeds):
            data = seeds[report.executions]
        elif (executions is not None and report.executions >= executions) or (
            until is not None and time.monotonic() >= until
        ):
            break
        else:
            data = mutate(_parent(report.corpus, random), report.corpus, target.words, random)
        report.executions += 1
        report.finding = _run(target, data, coverage, report.corpus.append)
        if report.executions <= len(seeds) and data not in report.corpus:
            report.corpus.append(data)
    report.edges = len(coverage.seen)
    return report


def check(target: Target, data: bytes) -> Finding | None:
    """Run a target once."""
    return _run(target, data, Coverage(), lambda _data: None)


def _parent(corpus: list[bytes], random: Random) -> bytes:
    return random.choice(corpus[-_RECENT:] if random.random() < 0.5 else corpus)


def _run(target: Target, data: bytes, coverage: Coverage, keep: Callable[[bytes], object]) -> Finding | None:
    known = len(coverage.seen)
    try:
        coverage.run(target.run, data, LINES + LINES_PER_BYTE * len(data))
    except target.expected:
        pass
    except (Exception, TooMuchWork) as error:  # noqa: BLE001  any of them is a finding
        return Finding(target.name, data, error)
    if len(coverage.seen) > known:
        keep(data)
    return None
