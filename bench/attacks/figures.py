"""Latencies as percentiles: quiet, under attack, and the ratio that is expected to hold.

A latency is measured twice: in wall time, and as the CPU time that the broker used meanwhile. The second
is what the broker did before and for this request, and does not depend on other processes of the machine.
"""

from collections.abc import Mapping, Sequence
from statistics import quantiles
from typing import Final, NamedTuple

EXPECTED: Final = 3.0
HEADING: Final = (
    f"{'attack':<38} {'request':<18} {'clock':<6} {'quiet: p50':>10} {'p99 ms':>8} {'attacked: p50':>14} "
    f"{'p99 ms':>8} {'p50 ratio':>10} {'p99 ratio':>10}"
)


class Latency(NamedTuple):
    """Milliseconds from a request to its response."""

    wall: float
    cpu: float  # of the broker


Latencies = Mapping[str, list[Latency]]
"""The latency of each request, by its kind."""


class Percentiles(NamedTuple):
    p50: float
    p99: float

    @classmethod
    def of(cls, latencies: Sequence[float]) -> "Percentiles":
        cuts = quantiles(latencies, n=100)
        return cls(cuts[49], cuts[98])


class Row(NamedTuple):
    attack: str
    kind: str
    clock: str
    quiet: Percentiles
    attacked: Percentiles
    expected: float = EXPECTED

    @property
    def ratio(self) -> float:
        return self.attacked.p99 / self.quiet.p99

    @property
    def holds(self) -> bool:
        return self.ratio <= self.expected

    def __str__(self) -> str:
        quiet, attacked = self.quiet, self.attacked
        return (
            f"{self.attack:<38} {self.kind:<18} {self.clock:<6} {quiet.p50:>10.2f} {quiet.p99:>8.2f} "
            f"{attacked.p50:>14.2f} {attacked.p99:>8.2f} {attacked.p50 / quiet.p50:>9.1f}x "
            f"{self.ratio:>9.1f}x  {'holds' if self.holds else 'SHORT'}"
        )


def rows(attack: str, quiet: Latencies, attacked: Latencies, *, expected: float = EXPECTED) -> list[Row]:
    """Return two rows for each kind of request, one for each clock."""
    return [
        Row(
            attack,
            kind,
            clock,
            _percentiles(quiet[kind], clock),
            _percentiles(attacked[kind], clock),
            expected,
        )
        for kind in quiet
        for clock in Latency._fields
    ]


def _percentiles(latencies: Sequence[Latency], clock: str) -> Percentiles:
    return Percentiles.of([getattr(each, clock) for each in latencies])


def added(every: Sequence[Latencies]) -> Latencies:
    """Return the latencies of several rounds together."""
    return {kind: [each for found in every for each in found[kind]] for kind in every[0]}
