"""What a pipeline is about to do: from its declarations, the cluster and its checkpoints, without Spark."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headrace.pipeline.checkpoints import Checkpoint, read_checkpoint
from headrace.pipeline.declaration import DEAD_LETTERS_EVERY, Pipeline, Sink, Source
from headrace.pipeline.decoders import settle
from headrace.pipeline.initial_offsets import kept_position
from headrace.pipeline.state import State
from headrace.pipeline.targets import Delta, Parquet
from headrace.pipeline.topics import NewTopic, missing_topics
from headrace.protocol.ids import TopicPartition
from headrace.spark.offsets import Offsets
from headrace.spark.options import SourceOptions
from headrace.spark.planning import Planner


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePlan:
    """What is read, and how it becomes columns."""

    name: str
    topics: list[str]
    partitions: int
    records: int
    decode: str
    bad_rows: str
    dead_letters: str | None
    starting: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """A query of Spark's: what it reads, where it goes, and where it begins or goes on."""

    name: str
    inputs: list[str]
    target: str
    mode: str
    every: str
    checkpoint: str
    last_batch: int | None  # None: it has not run yet
    repeats: bool  # a batch that was begun and not finished
    lag: int
    lags: Mapping[str, int] = field(default_factory=dict)  # by partition: "orders-0"
    creates: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All of it."""

    pipeline: str
    bootstrap: str
    state: str
    since_ms: int | None
    sources: list[SourcePlan]
    views: dict[str, list[str]]  # and what each is made of
    queries: list[QueryPlan]
    new_topics: list[NewTopic]


def plan(pipeline: Pipeline, bootstrap: str, state: State) -> Plan:
    """The plan; NoSuchTopic if what is to be read is not there."""
    ends: dict[str, Ends] = {
        name: _ends(source, bootstrap, state) for name, source in pipeline.sources.items()
    }
    new = missing_topics(pipeline, bootstrap)
    return Plan(
        pipeline=pipeline.name,
        bootstrap=bootstrap,
        state=str(state.path),
        since_ms=state.since_ms,
        sources=[_source(source, ends[name]) for name, source in pipeline.sources.items()],
        views={view.name: list(view.inputs) for view in pipeline.views.values()},
        queries=[
            *(_of_sink(pipeline, sink, ends, state) for sink in pipeline.sinks.values()),
            *(
                _of_dead_letters(pipeline, each, ends, state)
                for each in pipeline.sources.values()
                if each.has_dead_letters
            ),
        ],
        new_topics=new,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Where the logs of a source begin and end, and where a query that is new to it begins."""

    earliest: Offsets
    latest: Offsets
    starting: Offsets

    def behind(self, checkpoint: Checkpoint | None) -> dict[TopicPartition, int]:
        """How many records of each partition a query has still to read."""
        has_begun = checkpoint is not None and (checkpoint.batch >= 0 or checkpoint.offsets)
        since = checkpoint.offsets if checkpoint is not None and has_begun else self.starting
        return {
            partition: max(0, end - max(self.earliest[partition], since.get(partition, 0)))
            for partition, end in sorted(self.latest.items())
        }


def _ends(source: Source, bootstrap: str, state: State) -> Ends:
    options = source.reading(bootstrap, state.since_ms)
    planner = Planner(SourceOptions.of(options, streaming=True))
    try:
        partitions = planner.partitions()
        initial = kept_position(state, source.name, options) or planner.initial()
        return Ends(
            earliest=planner.earliest(partitions), latest=planner.latest(partitions), starting=initial.offsets
        )
    finally:
        planner.close()


def _source(source: Source, ends: Ends) -> SourcePlan:
    return SourcePlan(
        name=source.name,
        topics=sorted({partition.topic for partition in ends.latest}),
        partitions=len(ends.latest),
        records=sum(end - ends.earliest[partition] for partition, end in ends.latest.items()),
        decode=_label(source),
        bad_rows=str(source.bad_rows),
        dead_letters=source.dead_letters if source.has_dead_letters else None,
        starting=source.starting,
    )


def _label(source: Source) -> str:
    """How records become columns; PipelineError if what says so cannot be found."""
    value = settle(source.decode, source.topic).label
    return (
        value if source.key is None else f"{value}, keys as {settle(source.key, source.topic, 'key').label}"
    )


def _of_sink(pipeline: Pipeline, sink: Sink, ends: Mapping[str, Ends], state: State) -> QueryPlan:
    name = pipeline.query_name(sink.name)
    return _query(
        name,
        state.checkpoint(name),
        [ends[each] for each in dict.fromkeys(pipeline.needed(sink))],
        inputs=list(sink.inputs),
        target=sink.target.label,
        mode=sink.mode,
        every=sink.every,
        creates=_new_place(sink),
    )


def _of_dead_letters(pipeline: Pipeline, source: Source, ends: Mapping[str, Ends], state: State) -> QueryPlan:
    name = pipeline.dead_letters_name(source.name)
    return _query(
        name,
        state.checkpoint(name),
        [ends[source.name]],
        inputs=[source.name],
        target=f"topic {source.dead_letters}",
        mode="append",
        every=DEAD_LETTERS_EVERY,
        creates=None,
    )


def _query(
    name: str,
    path: Path,
    sources: Iterable[Ends],
    *,
    inputs: list[str],
    target: str,
    mode: str,
    every: str,
    creates: str | None,
) -> QueryPlan:
    checkpoint = read_checkpoint(path)
    lags: dict[TopicPartition, int] = {}
    for each in sources:
        lags |= each.behind(checkpoint)
    return QueryPlan(
        name=name,
        inputs=inputs,
        target=target,
        mode=mode,
        every=every,
        checkpoint=str(path),
        last_batch=checkpoint.batch if checkpoint is not None and checkpoint.batch >= 0 else None,
        repeats=checkpoint is not None and checkpoint.unfinished,
        lag=sum(lags.values()),
        lags={str(partition): lag for partition, lag in lags.items()},
        creates=creates,
    )


def _new_place(sink: Sink) -> str | None:
    """The directory or table that will be made, as far as that can be seen from here."""
    target = sink.target
    if isinstance(target, Delta | Parquet) and target.directory is not None:
        log = target.directory / ("_delta_log" if isinstance(target, Delta) else "")
        return None if log.is_dir() else target.label
    return None
