"""Where a pipeline's results may go: topics, tables, files and the terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from headrace.pipeline.errors import PipelineError
from headrace.pipeline.paths import local_path, spark_url

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SOON: Final = "1 second"
_SELDOM: Final = "10 seconds"  # a table gets a file with every batch
_ALL_MODES: Final = ("append", "update", "complete")


class Target(Protocol):
    """A sink's other end."""

    @property
    def label(self) -> str:
        """As people are told."""
        ...

    @property
    def every(self) -> str:
        """How often it is written to unless a sink says otherwise."""
        ...

    @property
    def modes(self) -> tuple[str, ...]:
        """The output modes it can take."""
        ...

    def shape(self, frame: "DataFrame") -> "DataFrame":
        """The rows as the format wants them."""
        ...

    def format(self, bootstrap: str) -> tuple[str, dict[str, str]]:
        """Spark's name of the format, and its options."""
        ...


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic; rows become JSON objects, or with `raw` are written as they are.

    `key` names the column that is the record's key. A topic that is not there is created with `partitions`.
    """

    name: str
    key: str | None = None
    raw: bool = False  # the rows have the columns of records: key, value, headers, partition
    partitions: int | None = None
    replicas: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    every: str = _SOON

    def __post_init__(self) -> None:
        _check_options(self.options, "checkpointLocation")

    @property
    def label(self) -> str:
        return f"topic {self.name}"

    @property
    def modes(self) -> tuple[str, ...]:
        return _ALL_MODES

    def shape(self, frame: "DataFrame") -> "DataFrame":
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        if self.raw:
            return frame
        columns = [F.to_json(F.struct("*")).alias("value")]
        if self.key is not None:
            columns.append(F.col(self.key).cast("string").alias("key"))
        return frame.select(*columns)

    def format(self, bootstrap: str) -> tuple[str, dict[str, str]]:
        return "headrace", {"kafka.bootstrap.servers": bootstrap, "topic": self.name, **self.options}


@dataclass(frozen=True, slots=True)
class _Files:
    path: str
    partition_by: Sequence[str] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    files: int | None = None  # with every batch, per partition of the table; None: one of every task
    every: str = _SELDOM

    def __post_init__(self) -> None:
        local_path(self.path)  # it says what is wrong with it
        _check_options(self.options, "path", "checkpointLocation")

    def shape(self, frame: "DataFrame") -> "DataFrame":
        return _in_files(frame, self.files)

    @property
    def directory(self) -> Path | None:
        """On this machine, and absolute: executors may have another working directory. None: elsewhere."""
        return local_path(self.path)


@dataclass(frozen=True, slots=True)
class Parquet(_Files):
    """Parquet files, each batch once: Spark keeps the list of those that count beside them.

    Nobody merges them later, so a batch is one file unless you say otherwise. One query alone can write to a
    directory.
    """

    files: int | None = 1

    @property
    def label(self) -> str:
        return f"Parquet files in {self.path}"

    @property
    def modes(self) -> tuple[str, ...]:
        return ("append",)

    def format(self, bootstrap: str) -> tuple[str, dict[str, str]]:
        del bootstrap
        path = self.path if self.directory is None else spark_url(self.directory)
        return "parquet", {"path": path, **self.options}


@dataclass(frozen=True, slots=True)
class Delta(_Files):
    """A Delta table, each batch once."""

    compact_every: int | None = None  # batches; None: 50 if the table is in a local directory, else never

    @property
    def label(self) -> str:
        return f"Delta table {self.path}"

    @property
    def modes(self) -> tuple[str, ...]:
        return ("append", "complete")

    def format(self, bootstrap: str) -> tuple[str, dict[str, str]]:
        del bootstrap
        options = {"path": str(self.directory or self.path), **self.options}
        if self.compact_every is not None:
            options.setdefault("compactEvery", str(self.compact_every))
        if self.partition_by:
            options["partitionBy"] = ",".join(self.partition_by)
        return "headrace-delta", options


@dataclass(frozen=True, slots=True)
class Iceberg:
    """An Iceberg table in a catalog, each batch once: Iceberg("trucks.positions", {"type": "sql", ...})."""

    table: str
    catalog: Mapping[str, str]
    files: int | None = None
    every: str = _SELDOM

    @property
    def label(self) -> str:
        return f"Iceberg table {self.table}"

    @property
    def modes(self) -> tuple[str, ...]:
        return ("append", "complete")

    def shape(self, frame: "DataFrame") -> "DataFrame":
        return _in_files(frame, self.files)

    def format(self, bootstrap: str) -> tuple[str, dict[str, str]]:
        del bootstrap
        catalog = {f"catalog.{name}": value for name, value in self.catalog.items()}
        return "headrace-iceberg", {"table": self.table, **catalog}


@dataclass(frozen=True, slots=True)
class Console:
    """The terminal, a few rows of every batch."""

    rows: int = 20
    every: str = _SOON

    label: str = "the terminal"
    modes: tuple[str, ...] = _ALL_MODES

    def shape(self, frame: "DataFrame") -> "DataFrame":
        return frame

    def format(self, bootstrap: str) -> tuple[str, dict[str, Any]]:
        del bootstrap
        return "console", {"numRows": str(self.rows), "truncate": "false"}


def _check_options(options: Mapping[str, str], *reserved: str) -> None:
    """PipelineError if one of them would have rows or checkpoints go elsewhere than the pipeline says."""
    by_lower = {name.lower(): name for name in options}
    for name in reserved:
        if name.lower() in by_lower:
            instead = {"path": "it is the sink's first argument", "checkpointLocation": "--state says where"}
            raise PipelineError(
                f"option {by_lower[name.lower()]!r} cannot be set for a sink: {instead[name]}"
            )


def _in_files(frame: "DataFrame", files: int | None) -> "DataFrame":
    """Rows moved to so many tasks. `coalesce` would leave all the work before to as few, too."""
    return frame if files is None else frame.repartition(files)
