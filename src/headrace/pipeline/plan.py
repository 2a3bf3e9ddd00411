"""The plan of a pipeline: what a run would do, by its declarations, the cluster and the checkpoints."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field

from headrace.pipeline.checkpoints import Checkpoint, read_checkpoint
from headrace.pipeline.declaration import Pipeline, Sink, Source
from headrace.pipeline.decoders import settle
from headrace.pipeline.initial_offsets import stored_position
from headrace.pipeline.shared_queries import Division, divide
from headrace.pipeline.state import PipelineState
from headrace.pipeline.targets import Delta, Parquet
from headrace.pipeline.topics import NewTopic, missing_topics
from headrace.protocol.ids import TopicPartition
from headrace.spark.offsets import from_json
from headrace.spark.options import SourceOptions
from headrace.spark.planner import Planner
from headrace.tables.reader.offsets import Offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePlan:
    """The topics that are read, and how they are decoded."""

    name: str
    topics: list[str]
    partitions: int
    records: int
    decode: str
    bad_rows: str
    dead_letters: str | None
    starting: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationPlan:
    """A condition on the rows of a step, and what happens to rows that break it."""

    step: str
    name: str
    condition: str
    otherwise: str
    quarantine: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """A Spark query: what it reads, its target, and how far it is."""

    name: str
    inputs: list[str]
    target: str
    mode: str
    every: str
    checkpoint: str
    last_batch: int | None  # None: the query has not run yet
    repeats: bool  # whether a batch was started and not finished
    lag: int
    lags: Mapping[str, int] = field(default_factory=dict)  # by partition: "orders-0"
    creates: str | None = None  # the local directory or table that the query would create
    # The query that it shares with other sinks; before the first run, unless Spark keeps state for it.
    shared: str | None = None
    shares_with: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    pipeline: str
    bootstrap: str
    state: str
    since_ms: int | None
    sources: list[SourcePlan]
    views: dict[str, list[str]]  # with their arguments
    expectations: list[ExpectationPlan]
    queries: list[QueryPlan]
    new_topics: list[NewTopic]


def plan(pipeline: Pipeline, bootstrap: str, state: PipelineState) -> Plan:
    """Return the plan; NoSuchTopic if the topic of a source does not exist."""
    ends = {name: _ends(source, bootstrap, state) for name, source in pipeline.sources.items()}
    sharing = state.sharing
    division = divide(
        pipeline, sharing.queries, sharing.left, has_run=state.has_run, is_stateless=lambda _: True
    )
    return Plan(
        pipeline=pipeline.name,
        bootstrap=bootstrap,
        state=str(state.path),
        since_ms=state.since_ms,
        sources=[_source(source, ends[name]) for name, source in pipeline.sources.items()],
        views={view.name: list(view.inputs) for view in pipeline.views.values()},
        expectations=[
            ExpectationPlan(
                step=expectation.step,
                name=expectation.name,
                condition=expectation.condition,
                otherwise=str(expectation.otherwise),
                quarantine=None if expectation.target is None else expectation.target.label,
            )
            for expectation in pipeline.expectations
        ],
        queries=[_query(pipeline, sink, ends, state, division) for sink in pipeline.queries()],
        new_topics=missing_topics(pipeline, bootstrap),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """The first and last offsets of a source's partitions, and the offsets where a new query starts."""

    earliest: Offsets
    latest: Offsets
    starting: Offsets

    def lags(self, checkpoint: Checkpoint | None) -> dict[TopicPartition, int]:
        """Return the number of records of each partition that a query has not read yet."""
        has_begun = checkpoint is not None and (checkpoint.batch >= 0 or checkpoint.offsets)
        since = checkpoint.offsets if checkpoint is not None and has_begun else self.starting
        return {
            partition: max(0, end - max(self.earliest[partition], since.get(partition, 0)))
            for partition, end in sorted(self.latest.items())
        }


def _ends(source: Source, bootstrap: str, state: PipelineState) -> Ends:
    options = source.reading(bootstrap, state.since_ms)
    with closing(Planner(SourceOptions.of(options, streaming=True))) as planner:
        partitions = planner.partitions()
        initial = stored_position(state, source.name, options) or planner.initial()
        return Ends(
            earliest=planner.earliest(partitions), latest=planner.latest(partitions), starting=initial.offsets
        )


def _source(source: Source, ends: Ends) -> SourcePlan:
    decode = settle(source.decode, source.topic).label
    if source.key is not None:
        decode = f"{decode}, keys as {settle(source.key, source.topic, 'key').label}"
    return SourcePlan(
        name=source.name,
        topics=sorted({partition.topic for partition in ends.latest}),
        partitions=len(ends.latest),
        records=sum(end - ends.earliest[partition] for partition, end in ends.latest.items()),
        decode=decode,
        bad_rows=str(source.bad_rows),
        dead_letters=source.dead_letters if source.has_dead_letters else None,
        starting=source.starting,
    )


def _query(
    pipeline: Pipeline, sink: Sink, ends: Mapping[str, Ends], state: PipelineState, division: Division
) -> QueryPlan:
    name = pipeline.query_name(sink.name)
    shared = division.query_of(sink.name)
    path = state.checkpoint(name if shared is None else shared.name)
    checkpoint = read_checkpoint(path)
    if checkpoint is None and name in (left := state.sharing.left):
        checkpoint = Checkpoint(offsets=from_json(left[name]))
    lags: dict[TopicPartition, int] = {}
    for source in pipeline.needed(sink):
        lags |= ends[source].lags(checkpoint)
    creates, target = None, sink.target
    if isinstance(target, Delta | Parquet) and target.directory is not None:
        log = target.directory / ("_delta_log" if isinstance(target, Delta) else "")
        creates = None if log.is_dir() else target.label
    return QueryPlan(
        name=name,
        inputs=list(sink.inputs),
        target=target.label,
        mode=sink.mode,
        every=sink.every,
        checkpoint=str(path),
        last_batch=checkpoint.batch if checkpoint is not None and checkpoint.batch >= 0 else None,
        repeats=checkpoint is not None and checkpoint.unfinished,
        lag=sum(lags.values()),
        lags={str(partition): lag for partition, lag in lags.items()},
        creates=creates,
        shared=None if shared is None else shared.name,
        shares_with=[] if shared is None else [name for name in shared.sinks if name != sink.name],
    )
