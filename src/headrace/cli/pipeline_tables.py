"""How a pipeline's queries look: on a terminal, in a line, at the end."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from headrace.cli.session import UNKNOWN, table, together
from headrace.cli.texts import count
from headrace.pipeline.progress import Progress
from headrace.pipeline.summing import Figures

if TYPE_CHECKING:
    from rich.console import RenderableType

_WORST: Final = 3  # partitions that are named
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
COLUMNS: Final = ("query", "state", "batch", "in/s", "out/s", "lag", "took", "state rows", "watermark")


def draw_queries(
    head: str, queries: Sequence[Figures], names: Sequence[str], since_s: float
) -> "RenderableType":
    """All queries, those that have not begun yet as well, and below what is worth a look."""
    shown = {each: Figures(each) for each in names} | {each.query: each for each in queries}
    rows = [row(each, each.query.partition(".")[2]) for each in shown.values()]
    parts: list[RenderableType] = [
        f"{head}, for {timedelta(seconds=int(since_s))}; Ctrl-C ends it",
        table(COLUMNS, rows),
    ]
    if remarks := list(_remarks(list(shown.values()))):
        parts.append("\n".join(remarks))
    return together(parts)


def row(figures: Figures, name: str) -> Sequence[object]:
    """A query in a table."""
    last = figures.last
    if last is None:
        return (name, figures.event, *[UNKNOWN] * (len(COLUMNS) - 2))
    moving = figures.is_moving
    return (
        name,
        "running" if figures.event == "batch" else figures.event,
        last.batch,
        rate(last.rows_per_s if moving else 0),
        rate(last.written_per_s if moving else 0),
        f"{last.lag:,}",
        seconds(last.took_ms),
        f"{last.state_rows:,} ({size(last.state_bytes)})" if last.state_rows else UNKNOWN,
        watermark(last.watermark),
    )


def in_one_line(progress: Progress) -> str:
    """What a log says of a batch, a beginning or an end."""
    if progress.event == "failed":
        return f"{progress.query} failed: {progress.error}"
    if progress.event != "batch":
        return f"{progress.query} {progress.event}"
    parts = [
        f"{progress.query} batch {progress.batch}: {_flow(progress)}",
        seconds(progress.took_ms),
        f"lag {progress.lag:,}",
    ]
    if progress.state_rows:
        parts.append(f"state {progress.state_rows:,} rows, {size(progress.state_bytes)}")
    if (mark := watermark(progress.watermark)) != UNKNOWN:
        parts.append(f"watermark {mark}")
    return ", ".join(parts)


def in_short(figures: Figures) -> str:
    """The last line about a query."""
    ended = "ended" if figures.event in {"batch", "idle", "started"} else figures.event
    batches = f"{figures.batches:,} batch{'' if figures.batches == 1 else 'es'}"
    lag = f", lag {figures.last.lag:,}" if figures.last is not None else ""
    return f"{figures.query} {ended}: {batches}, {_flow(figures)}{lag}"


def _flow(what: Progress | Figures) -> str:
    return f"{count(what.rows, 'row')} in, {what.written:,} out"


def _remarks(queries: Sequence[Figures]) -> Iterator[str]:
    for each in queries:
        if worst := each.worst(_WORST):
            places = ", ".join(f"{place} {lag:,}" for place, lag in worst)
            yield f"{each.query} is behind most in {places}"
    for each in queries:
        if each.error:
            yield f"{each.query} failed: {each.error}"


def rate(per_s: float) -> str:
    return f"{per_s:,.0f}" if per_s >= 10 or not per_s else f"{per_s:.1f}"


def seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.1f} s"


def size(number: float) -> str:
    for unit in _UNITS:
        if number < 1024 or unit == _UNITS[-1]:
            break
        number /= 1024
    return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"


def watermark(text: str) -> str:
    """Spark's, which is 1970 as long as there is none."""
    return UNKNOWN if not text or text.startswith("1970-") else text.replace(".000Z", "Z")


def when(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at_ms else UNKNOWN
