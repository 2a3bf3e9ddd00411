"""The output of the demo: a line for each step, and live figures while it runs."""

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.text import Text

from headrace.cli.demo.trucks import Fleet
from headrace.cli.pipeline.run import QueryFigures, draw_queries
from headrace.cli.support.output import lines

_LINE_EVERY_S: Final = 3.0  # where stdout is not a terminal


class Show:
    """Prints a line for each step with its duration; on stderr if stdout is for --json."""

    def __init__(self, *, on_stderr: bool = False) -> None:
        self.console = Console(highlight=False, stderr=on_stderr)

    def title(self, text: str) -> None:
        self.console.print(Text(f"\n{text}\n", style="bold"))

    def step(self, verb: str, what: str, seconds: float | None = None) -> None:
        took = "" if seconds is None else f"  {seconds:.2f} s"
        self.console.print(
            Text.assemble((f"  {verb:<10}", "bold green"), " ", what, (took, "cyan")), soft_wrap=True
        )


class Figures(QueryFigures):
    """The live figures of fleet and pipeline; the pipeline calls it after every batch."""

    def __init__(self, show: Show, fleet: Fleet) -> None:
        super().__init__()
        self.brokers = ""
        self._fleet = fleet
        self._console = show.console
        self._began = time.monotonic()
        self._printed_s = 0.0

    def live(self) -> AbstractContextManager[object]:
        """Draw the figures while the block runs, if the output is a terminal."""
        if not self._console.is_terminal:
            return nullcontext()
        return Live(console=self._console, get_renderable=self._draw, refresh_per_second=4, transient=True)

    def print_line(self) -> None:
        """Print a line every few seconds where the output is not a terminal."""
        if not self._console.is_terminal and time.monotonic() - self._printed_s > _LINE_EVERY_S:
            self._printed_s = time.monotonic()
            done = ", ".join(f"{each.query.split('.')[-1]} {each.rows:,}" for each in self.all() if each.last)
            line = f"{self._head()}; {done or 'Spark is starting'}; {self.brokers}"
            self._console.print(f"             {line}", soft_wrap=True)

    def _head(self) -> str:
        return f"{self._fleet.acknowledged:,} of {self._fleet.sent:,} positions acknowledged"

    def _draw(self) -> Text:
        head = "; ".join(filter(None, (self._head(), self.brokers)))
        drawn = draw_queries(head, self.all(), (), time.monotonic() - self._began)
        return Text.from_ansi("\n".join(lines(drawn, self._console.width, styled=True)))
