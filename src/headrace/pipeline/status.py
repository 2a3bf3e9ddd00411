"""The status of pipelines, from the history of their progress and from the local state."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from headrace.client.errors import NoSuchTopic
from headrace.client.wire.connection_settings import Target
from headrace.pipeline.observers import history
from headrace.pipeline.progress import Figures, Progress
from headrace.pipeline.state import PipelineState
from headrace.pipeline.storage.object_store import StoragePath

TAIL: Final = 20_000  # records of the history that are read first
SILENT_MS: Final = 60_000  # an idle query reports progress every ten seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStatus:
    pipeline: str
    state: str  # running, failed, ended, stopped; or silent: it ended without an event
    pid: int | None  # of the process on this machine
    queries: list[Figures] = field(default_factory=list)


def statuses(target: Target, root: StoragePath, name: str | None, now_ms: int) -> list[PipelineStatus]:
    """Return the status of the pipeline of that name, or of all; [] if there is none."""
    queries = totals(_progress(target, name, last=TAIL))
    if name is not None and not queries:
        queries = totals(_progress(target, name))
    local = {path.name for path in root.iterdir() if path.is_dir()} if root.is_dir() else set()
    names = (queries.keys() | local) & ({name} if name else queries.keys() | local)
    return [_status(pipeline, queries.get(pipeline, []), root, now_ms) for pipeline in sorted(names)]


def totals(progress: Iterable[Progress]) -> dict[str, list[Figures]]:
    """Return the totals of the queries of each pipeline, since each query was started last."""
    found: dict[str, dict[str, Figures]] = {}
    for event in progress:
        queries = found.setdefault(event.pipeline, {})
        queries.setdefault(event.query, Figures(event.query)).add(event)
    return {name: [queries[query] for query in sorted(queries)] for name, queries in found.items()}


def state_of(queries: Iterable[Figures], now_ms: int) -> str:
    """Return the state of a pipeline by the last events of its queries."""
    known = list(queries)
    if any(figures.event == "failed" for figures in known):
        return "failed"
    if known and all(figures.event == "ended" for figures in known):
        return "ended"
    last_ms = max((figures.at_ms for figures in known), default=0)
    return "running" if now_ms - last_ms < SILENT_MS else "silent"


def _status(name: str, queries: list[Figures], root: StoragePath, now_ms: int) -> PipelineStatus:
    state = PipelineState(root, name)
    pid = state.pid
    reported = state_of(queries, now_ms)
    if pid is not None:
        reported = "running"
    elif state.path.is_dir() and reported not in {"failed", "ended"}:
        reported = "stopped"
    return PipelineStatus(pipeline=name, state=reported, pid=pid, queries=queries)


def _progress(target: Target, name: str | None, last: int | None = None) -> list[Progress]:
    try:
        return list(history(target, name, last=last))
    except NoSuchTopic:  # no pipeline has run here yet
        return []
