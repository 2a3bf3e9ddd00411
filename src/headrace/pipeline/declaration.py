"""The declarations of a pipeline: sources, views and sinks. Nothing here runs or imports Spark."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from headrace.pipeline.decoders import Decoder, Raw, Unsettled
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.expectations import Expectation, Otherwise, check_target
from headrace.pipeline.restarts import Restart
from headrace.pipeline.targets import Parquet, Target, Topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DEAD_LETTERS_EVERY: Final = "5 seconds"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_MODES: Final = ("append", "update", "complete")

Transformation: TypeAlias = "Callable[..., DataFrame]"
Function = TypeVar("Function", bound=Callable[..., Any])


class BadRows(StrEnum):
    """What happens to records that cannot be decoded."""

    DEAD_LETTER = "dead-letter"  # they are written to another topic, with the reason
    DROP = "drop"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A topic, or several, and the decoder of its records."""

    name: str
    topic: str  # several: separated by commas
    decode: Decoder | Unsettled
    key: Decoder | Unsettled | None  # None: keys are not decoded
    bad_rows: BadRows
    dead_letters: str  # the topic of records that cannot be decoded
    starting: str
    options: Mapping[str, str] = field(repr=False)  # may contain passwords

    def reading(self, bootstrap: str, since_ms: int | None = None) -> dict[str, str]:
        """Return the options for format("headrace"); `since_ms` replaces `starting`."""
        found = {
            "kafka.bootstrap.servers": bootstrap,
            "includeHeaders": "true",
            "startingOffsets": self.starting,
            **({} if {"subscribePattern", "assign"} & self.options.keys() else {"subscribe": self.topic}),
            **self.options,
        }
        if not {"isolation.level", "kafka.isolation.level"} & {name.lower() for name in found}:
            found["isolation.level"] = "read_committed"  # pipelines write in transactions
        if since_ms is not None:
            found |= {"startingTimestamp": str(since_ms), "startingOffsetsByTimestampStrategy": "latest"}
        return found

    @property
    def has_dead_letters(self) -> bool:
        decodes = not isinstance(self.decode, Raw) or self.key is not None
        return self.bad_rows is BadRows.DEAD_LETTER and decodes


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A named function of sources and other views."""

    name: str
    function: Transformation
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """A function and the target of its result."""

    name: str
    function: "Transformation | None"  # None: records that cannot be decoded, or rows in quarantine
    inputs: tuple[str, ...]
    target: Target
    mode: str
    every: str
    quarantine_of: str | None = None  # the step whose rows it gets if they break an expectation
    follows: bool = False  # it shares the query of any sink of its source, whatever the interval


@dataclass(slots=True)
class Pipeline:
    """Sources, views and sinks. The pipeline's name is part of those of its state and consumer groups."""

    name: str
    bootstrap: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)  # of Spark
    # Of Kafka clients, by librdkafka's names: {"security.protocol": "SASL_SSL", ...}
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    restart: Restart | None = None  # None: a query that fails ends the pipeline
    sources: dict[str, Source] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    sinks: dict[str, Sink] = field(default_factory=dict)
    expectations: list[Expectation] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_name("a pipeline", self.name)

    def source(
        self,
        name: str,
        *,
        topic: str,
        decode: Decoder | Unsettled | None = None,
        key: Decoder | Unsettled | None = None,
        bad_rows: BadRows | str = BadRows.DEAD_LETTER,
        dead_letters: str | None = None,
        starting: str = "earliest",
        options: Mapping[str, str] | None = None,
    ) -> Source:
        """Declare a source; functions with an argument `name` get it as a DataFrame.

        `decode` decodes values to columns, and `key` decodes keys to the column `_key`. `options` are those
        of format("headrace"); `starting` is for the first run only.
        """
        self._check_new(name)
        try:
            bad_rows = BadRows(bad_rows)
        except ValueError:
            raise PipelineError(f"source {name}: bad_rows is one of {', '.join(BadRows)}") from None
        self.sources[name] = Source(
            name=name,
            topic=topic,
            decode=decode or Raw(),
            key=key,
            bad_rows=bad_rows,
            dead_letters=dead_letters or f"{topic.split(',', maxsplit=1)[0].strip()}.dead-letters",
            starting=starting,
            options={**self.client_options, **(options or {})},
        )
        return self.sources[name]

    def view(self, function: Function) -> Function:
        """Declare a view; functions with an argument of this function's name get its result."""
        name = function.__name__
        self._check_new(name)
        self.views[name] = View(name=name, function=function, inputs=_arguments(function))
        return function

    def sink(
        self, target: Target, *, mode: str = "append", every: str | None = None
    ) -> Callable[[Function], Function]:
        """Write the result of the function to `target`; `every` is the interval ("5 seconds")."""
        if mode not in _MODES:
            raise PipelineError(f"a sink's mode is one of {', '.join(_MODES)}, not {mode!r}")
        if mode not in target.modes:
            raise PipelineError(
                f"{target.label} supports mode {' or '.join(target.modes)}, not {mode}: write rows that "
                "change to a topic, or use append with a watermark"
            )

        def declare(function: Function) -> Function:
            name = function.__name__
            self._check_new(name)
            self.sinks[name] = Sink(
                name=name,
                function=function,
                inputs=_arguments(function),
                target=target,
                mode=mode,
                every=every or target.every,
            )
            return function

        return declare

    def expect(self, step: str, name: str, condition: str) -> None:
        """Count the rows of a source, view or sink that do not meet a condition in SQL; they are kept."""
        self._expect(step, name, condition, Otherwise.KEEP)

    def expect_or_drop(self, step: str, name: str, condition: str) -> None:
        """Drop and count the rows of a source, view or sink that do not meet a condition in SQL."""
        self._expect(step, name, condition, Otherwise.DROP)

    def expect_or_fail(self, step: str, name: str, condition: str) -> None:
        """End the pipeline at a row of a source, view or sink that does not meet a condition in SQL."""
        self._expect(step, name, condition, Otherwise.FAIL)

    def expect_or_quarantine(self, step: str, name: str, condition: str, *, to: Target) -> None:
        """Write the rows that do not meet a condition to a topic or a table instead, with the reason."""
        check_target(step, to, self.expectations_of(step))
        self._expect(step, name, condition, Otherwise.QUARANTINE, to)

    def _expect(
        self, step: str, name: str, condition: str, otherwise: Otherwise, target: Target | None = None
    ) -> None:
        if not name.strip() or not condition.strip():
            raise PipelineError(f"{step}: an expectation has a name and a condition")
        if name in [expectation.name for expectation in self.expectations_of(step)]:
            raise PipelineError(f"{step}: expectation {name!r} is declared twice")
        self.expectations.append(
            Expectation(step=step, name=name, condition=condition, otherwise=otherwise, target=target)
        )

    def expectations_of(self, step: str) -> list[Expectation]:
        return [expectation for expectation in self.expectations if expectation.step == step]

    @property
    def client_options(self) -> dict[str, str]:
        """The client settings as options of format("headrace")."""
        return {f"kafka.{name}": value for name, value in self.client.items()}

    def use_client(self, client: Mapping[str, str]) -> None:
        """Set the client settings of a pipeline whose sources are declared; their own options win."""
        self.client = client
        for name, source in self.sources.items():
            self.sources[name] = replace(source, options={**self.client_options, **source.options})

    def query_name(self, sink: str) -> str:
        """Return the name of a sink's query, which is also that of its consumer group."""
        return f"{self.name}.{sink}"

    def queries(self) -> Iterator[Sink]:
        """Yield the sinks, and those that write dead letters and rows in quarantine."""
        yield from self.sinks.values()
        for source in self.sources.values():
            if source.has_dead_letters:
                yield Sink(
                    name=f"{source.name}.dead-letters",
                    function=None,
                    inputs=(source.name,),
                    target=Topic(source.dead_letters, raw=True),
                    mode="append",
                    every=_DEAD_LETTERS_EVERY,
                    follows=True,
                )

        quarantines = {
            expectation.step: expectation.target
            for expectation in self.expectations
            if expectation.target is not None
        }
        for step, target in quarantines.items():
            declared = self.views.get(step) or self.sinks.get(step)
            yield Sink(
                name=f"{step}.quarantine",
                function=None,
                inputs=(step,) if declared is None else declared.inputs,
                target=target,
                mode="append",
                every=target.every,
                quarantine_of=step,
                follows=True,
            )

    def check(self) -> None:
        """Raise PipelineError if an argument of a function is unknown, or views depend on each other.

        Two sinks must not write Parquet files to one directory either.
        """
        if not self.sinks:
            raise PipelineError(f"pipeline {self.name} has no sink, and so nothing to run")
        for step in self.sinks.values():
            for _ in self.needed(step):
                pass
        for expectation in self.expectations:
            if expectation.step not in {*self.sources, *self.views, *self.sinks}:
                raise PipelineError(
                    f"expectation {expectation.name!r}: there is no source, view or sink {expectation.step!r}"
                )
        owners: dict[str, str] = {}
        for sink in self.sinks.values():
            if isinstance(sink.target, Parquet):
                other = owners.setdefault(str(sink.target.directory or sink.target.path), sink.name)
                if other != sink.name:
                    raise PipelineError(
                        f"sinks {other} and {sink.name} both write {sink.target.label}, and Spark would "
                        "skip batches of one of them: give each its own directory"
                    )

    def needed(self, step: Sink | View, path: tuple[str, ...] = ()) -> Iterator[str]:
        """Yield the names of the sources that a step depends on, directly or through views."""
        if step.name in path:
            raise PipelineError(f"views depend on each other: {' -> '.join([*path, step.name])}")
        if not step.inputs:
            raise PipelineError(
                f"{step.name}() has no argument: its arguments name the sources that it reads"
            )
        for name in step.inputs:
            if name in self.sources:
                yield name
            elif name in self.views:
                yield from self.needed(self.views[name], (*path, step.name))
            else:
                known = ", ".join([*self.sources, *self.views]) or "none"
                raise PipelineError(f"{step.name}({name}): there is no source or view {name!r}, only {known}")

    def steps_of(self, sink: Sink) -> set[str]:
        """Return the steps whose expectations the rows of a sink have passed."""
        if sink.function is None and sink.quarantine_of is None:
            return set()  # dead letters are not decoded
        found = {sink.name} if sink.function is not None else set()
        names = list(sink.inputs)
        while names:
            name = names.pop()
            if name not in found:
                found.add(name)
                names += self.views[name].inputs if name in self.views else ()
        return found - {sink.quarantine_of}

    def run(
        self,
        spark: "SparkSession | None" = None,
        *,
        bootstrap: str | None = None,
        state: Path | str = ".headrace",
        once: bool = False,
    ) -> None:
        """Run the pipeline in a session: a notebook's, or one of Spark Connect; by default spark-submit's.

        It runs until it is interrupted, or, with `once`, to the current end of its topics. `state` is the
        directory of checkpoints, or a URL; a relative path is relative to the current directory.
        """
        from headrace.pipeline.embedded import run  # noqa: PLC0415  imports Spark

        run(self, spark, bootstrap=bootstrap, state=state, once=once)

    def _check_new(self, name: str) -> None:
        check_name("a source, view or sink", name)
        if name in self.sources or name in self.views or name in self.sinks:
            raise PipelineError(f"{name!r} is declared twice in pipeline {self.name}")


def check_name(what: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise PipelineError(f"{name!r} is not a valid name of {what}: use letters, digits, - and _")


def _arguments(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)
