"""Which sinks of a pipeline share one Spark query, so that their source is read and decoded once.

Sinks share a query if they read the same source with the same interval, and Spark keeps no state for them. A
query that has begun keeps its sinks: Spark's checkpoint has one position for all of them. So a sink that is
added later begins in a query of its own, and one that was in a query of its own before stays there until
`reset`. See decision 0032.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from headrace.pipeline.declaration import Pipeline, Sink
from headrace.pipeline.targets import Delta, Iceberg, Topic

_TARGETS: Final = (Topic, Delta, Iceberg)  # they recognise a batch that is written again
_LEAST: Final = 2  # sinks; one alone is written by Spark itself


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedQuery:
    """A query that reads one source for several sinks."""

    name: str
    source: str
    sinks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """The queries of a pipeline: those that are shared, and the sinks with a query of their own."""

    shared: tuple[SharedQuery, ...] = ()
    own: tuple[str, ...] = ()
    left: Mapping[str, str] = field(default_factory=dict)  # sinks, and the query that they were part of

    def query_of(self, sink: str) -> SharedQuery | None:
        return next((query for query in self.shared if sink in query.sinks), None)


def divide(
    pipeline: Pipeline,
    stored: Iterable[SharedQuery],
    left: Container[str] = (),
    *,
    has_run: Callable[[str], bool],
    is_stateless: Callable[[Sink], bool],
) -> Division:
    """Return the queries of the next run; `stored` are the shared ones of the last run.

    `left` has the full names of sinks that have left a shared query, and continue in their own. `has_run`
    says whether the query of a name has a position. Without one, a stored query is divided anew.
    """
    begun = [query for query in stored if has_run(query.name)]
    before = {sink: query for query in begun for sink in query.sinks}
    members: dict[str, list[str]] = {query.name: [] for query in begun}
    own: list[str] = []
    new: list[Sink] = []
    for sink in pipeline.queries():
        has_one_source = len(set(pipeline.needed(sink))) == 1
        may_share = has_one_source and sink.mode == "append" and isinstance(sink.target, _TARGETS)
        shares = may_share and is_stateless(sink)
        query = before.get(sink.name)
        name = pipeline.query_name(sink.name)
        if has_run(name) or name in left:
            own.append(sink.name)
        elif query is not None and shares and {query.source} == set(pipeline.needed(sink)):
            members[query.name].append(sink.name)
        elif query is not None or not shares:
            own.append(sink.name)
        else:
            new.append(sink)
    made, alone = _grouped(pipeline, new, members.keys())
    kept = [SharedQuery(name=q.name, source=q.source, sinks=tuple(members[q.name])) for q in begun]
    together = {sink for query in (*kept, *made) for sink in query.sinks}
    return Division(
        shared=(*kept, *made),
        own=tuple(sink.name for sink in pipeline.queries() if sink.name in {*own, *alone}),
        left={sink: query.name for sink, query in before.items() if sink not in together},
    )


def _grouped(
    pipeline: Pipeline, sinks: Sequence[Sink], taken: Iterable[str]
) -> tuple[list[SharedQuery], list[str]]:
    """Return new shared queries, and the sinks that have nobody to share with."""
    groups: dict[tuple[str, str], list[str]] = {}
    for sink in sorted(sinks, key=lambda sink: sink.follows):  # these join a group of their source
        (source,) = set(pipeline.needed(sink))
        joined = next((key for key in groups if key[0] == source), None) if sink.follows else None
        groups.setdefault(joined or (source, sink.every), []).append(sink.name)
    names = set(taken)
    made: list[SharedQuery] = []
    for (source, _), members in groups.items():
        if len(members) >= _LEAST:
            # No sink has such a name, because the name of a sink has no dot.
            suffixes = ("shared" if n == 1 else f"shared-{n}" for n in count(1))
            candidates = (pipeline.query_name(f"{source}.{suffix}") for suffix in suffixes)
            name = next(candidate for candidate in candidates if candidate not in names)
            names.add(name)
            made.append(SharedQuery(name=name, source=source, sinks=tuple(members)))
    together = {sink for query in made for sink in query.sinks}
    return made, [sink.name for sink in sinks if sink.name not in together]


def to_json(queries: Iterable[SharedQuery]) -> dict[str, Any]:
    return {query.name: {"source": query.source, "sinks": list(query.sinks)} for query in queries}


def from_json(value: Mapping[str, Any]) -> list[SharedQuery]:
    return [
        SharedQuery(name=name, source=each["source"], sinks=tuple(each["sinks"]))
        for name, each in value.items()
    ]
