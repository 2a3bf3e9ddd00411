"""What is measured, what is expected of it, and the table that says whether it holds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, Generic, TypeVar

On = TypeVar("On")
"""What a line runs on: a broker, a cluster, or what starts one."""

Figures = Mapping[str, float]
"""What one round on one contender showed, by name and unit: {"MB/s": 182.0, "CPU s/GB": 3.3}."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a figure of ours should be: as a ratio to Kafka's, or by itself if `absolute`."""

    figure: str
    at_least: float | None = None
    at_most: float | None = None
    absolute: bool = False
    beside: str = ""  # another figure to show in the same row

    def holds(self, value: float) -> bool:
        low = self.at_least is None or value >= self.at_least
        return low and (self.at_most is None or value <= self.at_most)

    def __str__(self) -> str:
        if self.at_least is None and self.at_most is None:
            return ""
        sign, bound = ("<=", self.at_most) if self.at_least is None else (">=", self.at_least)
        return f"{sign} {bound:.2f}{'' if self.absolute else 'x'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line(Generic[On]):
    """One load. `prepare` runs once per contender, `run` once per round, `finish` at the end."""

    name: str
    run: Callable[[On], Figures]
    expected: Sequence[Expected]
    prepare: Callable[[On], None] = lambda _server: None
    finish: Callable[[On], None] = lambda _server: None
    warm_up: bool = True
    quick: bool = True
    rounds: int | None = None  # None: as many as the mode has


HEADING: Final = (
    f"{'load':<57} {'figure':<15} {'headrace':>10} {'kafka':>10} {'ratio':>7}  {'rounds':<13} "
    f"{'expected':<9} {'':<6} beside"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    load: str
    expected: Expected
    ours: Sequence[float]
    kafkas: Sequence[float]
    beside: str

    @property
    def ratio(self) -> float:
        return _ratio(median(self.ours), median(self.kafkas))

    @property
    def verdict(self) -> str:
        """`near` if only some rounds are as expected: on a busy machine, run it again."""
        expected = self.expected
        if expected.at_least is None and expected.at_most is None:
            return ""
        each = self.ours if expected.absolute else self.ratios
        if expected.holds(median(self.ours) if expected.absolute else self.ratio):
            return "holds"
        return "near" if any(map(expected.holds, each)) else "SHORT"

    @property
    def judged(self) -> str:
        """The number that `expected` is about: a ratio to Kafka, or the figure itself."""
        return _number(median(self.ours)) if self.expected.absolute else f"{self.ratio:.2f}x"

    @property
    def ratios(self) -> list[float]:
        return [_ratio(ours, kafkas) for ours, kafkas in zip(self.ours, self.kafkas, strict=True)]

    def __str__(self) -> str:
        spread = f"{min(self.ratios):.2f}-{max(self.ratios):.2f}"
        return (
            f"{self.load:<57} {self.expected.figure:<15} {_number(median(self.ours)):>10} "
            f"{_number(median(self.kafkas)):>10} {self.ratio:>6.2f}x  {spread:<13} {self.expected!s:<9} "
            f"{self.verdict:<6} {self.beside}"
        ).rstrip()


def rows(line: Line[On], ours: Sequence[Figures], kafkas: Sequence[Figures]) -> list[Row]:
    return [
        Row(
            load=line.name,
            expected=expected,
            ours=[figures[expected.figure] for figures in ours],
            kafkas=[figures[expected.figure] for figures in kafkas],
            beside=_beside(expected.beside, ours, kafkas),
        )
        for expected in line.expected
    ]


def _beside(figure: str, ours: Sequence[Figures], kafkas: Sequence[Figures]) -> str:
    if not figure:
        return ""
    both = (_number(median(each[figure] for each in side)) for side in (ours, kafkas))
    return f"{figure} {' | '.join(both)}"


def _ratio(ours: float, kafkas: float) -> float:
    return ours / kafkas if kafkas else float("inf")


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def summary(every: Sequence[Row]) -> str:
    judged = [row for row in every if row.verdict]
    lines = [f"{sum(row.verdict == 'holds' for row in judged)} of {len(judged)} expectations hold"]
    lines += [
        f"  {row.verdict:<5} {row.load}, {row.expected.figure}: {row.judged}, expected {row.expected}"
        for row in judged
        if row.verdict != "holds"
    ]
    return "\n".join(lines)
