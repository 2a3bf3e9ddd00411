"""How pipelines stand, from what is kept of their progress and from the state on this machine."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from headrace.client.errors import NoSuchTopic
from headrace.pipeline.observers import history
from headrace.pipeline.progress import Progress
from headrace.pipeline.state import State
from headrace.pipeline.summing import Figures

TAIL: Final = 20_000  # records of progress that are looked at before all of them are
SILENT_MS: Final = 60_000  # a query without rows says so every ten seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One pipeline."""

    pipeline: str
    state: str  # running, failed, ended, stopped; or silent: what ran it did not say goodbye
    pid: int | None  # if it runs on this machine
    queries: list[Figures] = field(default_factory=list)


def standings(bootstrap: str, root: Path, name: str | None, now_ms: int) -> list[Standing]:
    """The pipeline of that name, or all; none if nothing is known."""
    queries = gathered(_progress(bootstrap, name, last=TAIL))
    if name is not None and not queries:
        queries = gathered(_progress(bootstrap, name))
    here = {each.name for each in root.iterdir() if each.is_dir()} if root.is_dir() else set()
    names = (queries.keys() | here) & ({name} if name else queries.keys() | here)
    return [_standing(each, queries.get(each, []), root, now_ms) for each in sorted(names)]


def gathered(progress: Iterable[Progress]) -> dict[str, list[Figures]]:
    """The figures of each pipeline's queries, since each was started last."""
    found: dict[str, dict[str, Figures]] = {}
    for each in progress:
        queries = found.setdefault(each.pipeline, {})
        queries.setdefault(each.query, Figures(each.query)).take(each)
    return {name: [queries[each] for each in sorted(queries)] for name, queries in found.items()}


def state_of(queries: Iterable[Figures], now_ms: int) -> str:
    """What the queries' last words come to, for somebody who cannot see the process."""
    known = list(queries)
    if any(each.event == "failed" for each in known):
        return "failed"
    if known and all(each.event == "ended" for each in known):
        return "ended"
    last_ms = max((each.at_ms for each in known), default=0)
    return "running" if now_ms - last_ms < SILENT_MS else "silent"


def _standing(name: str, queries: list[Figures], root: Path, now_ms: int) -> Standing:
    state = State(root, name)
    pid = state.pid
    said = state_of(queries, now_ms)
    if pid is not None:
        said = "running"
    elif state.path.is_dir() and said not in {"failed", "ended"}:
        said = "stopped"
    return Standing(pipeline=name, state=said, pid=pid, queries=queries)


def _progress(bootstrap: str, name: str | None, last: int | None = None) -> list[Progress]:
    try:
        return list(history(bootstrap, name, last=last))
    except NoSuchTopic:  # no pipeline has run here yet
        return []
