"""A progress bar as one line of text. Pure: its caller has the clock and the terminal."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from headrace.cli.support.tables import text_width

_BAR: Final = 40  # columns
_REFRESH_S: Final = 0.1


def size(number: float) -> str:
    """Return `812 B`, `4.2 KiB`, `1.0 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(number) < 1024:
            return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"


@dataclass(slots=True)
class Progress:
    """How much of `total` is done; `unit` is `bytes`, a noun, or empty for a percentage."""

    label: str
    total: float
    unit: str
    began_s: float
    done: float = 0
    _drawn_s: float = field(default=float("-inf"))

    def advance(self, done: float, label: str | None, now_s: float) -> bool:
        """Count what was done; return whether the line is to be drawn again, at most ten times a second."""
        self.done += done
        changed = label is not None and label != self.label
        self.label = self.label if label is None else label
        if not changed and now_s - self._drawn_s < _REFRESH_S:
            return False
        self._drawn_s = now_s
        return True

    def line(self, now_s: float, width: int) -> str:
        """Return `label ━━━━╸     3/12 partitions 0:00:07`, without the bar if the terminal is narrow."""
        share = min(self.done / self.total, 1.0) if self.total else 1.0
        if self.unit == "bytes":
            figures = f"{size(self.done)}/{size(self.total)}"
        else:
            figures = f"{self.done:,.0f}/{self.total:,.0f} {self.unit}" if self.unit else f"{share:4.0%}"
        left_s = round((now_s - self.began_s) * (1 - share) / share) if share else None
        figures += f" {'-:--:--' if left_s is None else timedelta(seconds=left_s)}"
        room = min(_BAR, width - text_width(self.label) - len(figures) - 3)
        if room < 1:
            return f"{self.label} {figures}"[: max(width - 1, 0)]
        return f"{self.label} {'━' * int(share * room):<{room}} {figures}"
