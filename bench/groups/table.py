"""What is measured, and a line for each figure: ours, Kafka's, and the ratio of the two."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from compare.servers import Server
from compare.table import Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A load on a broker that was started for it with `settings`."""

    name: str
    run: Callable[[Server], Figures]
    settings: Mapping[str, str] = field(default_factory=dict)


def table(case: Case, ours: Figures, kafkas: Figures) -> str:
    """The load's name, and under it its figures."""
    heading = f"{case.name:<52} {'headrace':>10} {'kafka':>10} {'ratio':>8}"
    names = dict.fromkeys([*ours, *kafkas])
    return "\n".join([heading, *(_line(name, ours.get(name), kafkas.get(name)) for name in names)])


def _line(figure: str, ours: float | None, kafkas: float | None) -> str:
    ratio = f"{ours / kafkas:.2f}x" if ours is not None and kafkas else ""
    return f"  {figure:<50} {_number(ours):>10} {_number(kafkas):>10} {ratio:>8}".rstrip()


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if value == int(value) or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
