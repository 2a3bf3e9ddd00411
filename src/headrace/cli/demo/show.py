"""What the demo shows: steps that are done, and figures that move while it runs."""

import time
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headrace.cli.demo.fleet import Fleet
from headrace.pipeline.progress import Progress

_LINE_EVERY_S: Final = 3.0  # where there is no terminal to draw on


class Show:
    """Lines of what was done, and how long it took; on stderr where stdout is a machine's."""

    def __init__(self, *, aside: bool = False) -> None:
        self.console = Console(highlight=False, stderr=aside)

    def title(self, text: str) -> None:
        self.console.print(Text(f"\n{text}\n", style="bold"))

    def step(self, verb: str, what: str, seconds: float | None = None) -> None:
        took = "" if seconds is None else f"  {seconds:.2f} s"
        self.console.print(
            Text.assemble((f"  {verb:<10}", "bold green"), " ", what, (took, "cyan")), soft_wrap=True
        )


class Figures:
    """Moves while the fleet drives and the pipeline runs; told by the pipeline after every batch."""

    def __init__(self, show: Show, fleet: Fleet) -> None:
        self.latest: dict[str, Progress] = {}
        self.rows: dict[str, int] = {}
        self.brokers = ""
        self._fleet = fleet
        self._console = show.console
        self._live = Live(
            console=show.console, get_renderable=self._drawn, refresh_per_second=4, transient=True
        )
        self._told_s = 0.0

    def __call__(self, progress: Progress) -> None:
        if progress.event == "batch":
            self.latest[progress.query] = progress
            self.rows[progress.query] = self.rows.get(progress.query, 0) + progress.rows

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def look(self) -> None:
        """A line now and then, for those who read a log."""
        if not self._console.is_terminal and time.monotonic() - self._told_s > _LINE_EVERY_S:
            self._told_s = time.monotonic()
            done = ", ".join(f"{name.split('.')[-1]} {rows:,}" for name, rows in self.rows.items())
            self._console.print(
                f"             {self._fleet.acknowledged:,} of {self._fleet.sent:,} positions acknowledged; "
                f"{done or 'Spark begins'}; {self.brokers}",
                soft_wrap=True,
            )

    def _drawn(self) -> Table:
        table = Table(box=None, padding=(0, 2), title_justify="left")
        for name in ("", "records", "a second", "lag", "batch", "state", "watermark"):
            table.add_column(name, justify="left" if name in {"", "watermark"} else "right")
        table.add_row("fleet", f"{self._fleet.acknowledged:,}", "", "", "", "", self.brokers)
        for name, each in self.latest.items():
            table.add_row(
                name,
                f"{self.rows[name]:,}",
                f"{each.processed_per_s:,.0f}",
                f"{each.lag:,}",
                f"{each.took_ms / 1000:.1f} s",
                f"{each.state_rows:,}" if each.state_rows else "",
                each.watermark[11:19],
            )
        return table
