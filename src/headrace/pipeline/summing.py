"""What comes of a query's progress over one run: its sums, and its last state. Pure."""

from dataclasses import dataclass, field

from headrace.pipeline.progress import Progress


@dataclass(slots=True)
class Figures:
    """One query since it was started, or since somebody looks."""

    query: str
    event: str = "starting"
    batches: int = 0  # with rows
    rows: int = 0
    written: int = 0
    at_ms: int = 0
    error: str = ""
    last: Progress | None = field(default=None)  # the last batch

    def take(self, progress: Progress) -> None:
        """Take in what was told."""
        self.event, self.at_ms = progress.event, progress.at_ms
        if progress.event == "started":
            self.batches = self.rows = self.written = 0
            self.error = ""
        if progress.event == "failed":
            self.error = progress.error
        if progress.event == "batch":
            self.last = progress
            self.batches += bool(progress.rows or progress.written)
            self.rows += progress.rows
            self.written += progress.written

    @property
    def is_moving(self) -> bool:
        """Whether the rates of its last batch are those of now."""
        return self.event == "batch" and self.last is not None and self.last.rows > 0

    def worst(self, most: int) -> list[tuple[str, int]]:
        """The partitions that are furthest behind, and by how many records."""
        lags = self.last.lags if self.last is not None else {}
        behind = sorted(lags.items(), key=lambda each: (-each[1], each[0]))
        return [each for each in behind if each[1] > 0][:most]
