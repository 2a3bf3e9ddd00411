"""The targets of sinks: topics, tables, files and the terminal."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Self

from headrace.pipeline.errors import PipelineError
from headrace.pipeline.maintenance import Maintenance
from headrace.pipeline.storage.files import local_path, spark_url
from headrace.spark.errors import InvalidOption
from headrace.spark.merge.upsert import TOMBSTONES_FOR, UNAVAILABLE, Upsert
from headrace.spark.tables.maintenance import delta, iceberg

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from headrace.spark.tables.maintenance import Maintained

_SOON: Final = "1 second"
_SELDOM: Final = "10 seconds"  # a table gets a file with every batch
_JSON: Final = {  # rows as JSON objects: all columns, and all digits of a time
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_ALL_MODES: Final = ("append", "update", "complete")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic, each batch exactly once; rows become JSON objects, or records if they are `raw`.

    `key` is the column of the record's key. A topic that does not exist is created with `partitions`.
    """

    name: str
    key: str | None = None
    raw: bool = False  # the rows have the columns of records: key, value, headers, partition
    partitions: int | None = None
    replicas: int | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)  # may contain passwords
    every: str = _SOON
    modes: ClassVar[tuple[str, ...]] = _ALL_MODES

    def __post_init__(self) -> None:
        _check_options(self.options, "checkpointLocation")

    @property
    def label(self) -> str:
        return f"topic {self.name}"

    def shape(self, frame: "DataFrame") -> "DataFrame":
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        if self.raw:
            return frame
        columns = [F.to_json(F.struct("*"), _JSON).alias("value")]
        if self.key is not None:
            columns.append(F.col(self.key).cast("string").alias("key"))
        return frame.select(*columns)

    def format(self, bootstrap: str, /) -> tuple[str, dict[str, str]]:
        given = {name.lower() for name in self.options}
        once = {} if "exactlyonce" in given else {"exactlyOnce": "true"}
        return "headrace", {"kafka.bootstrap.servers": bootstrap, "topic": self.name, **once, **self.options}


@dataclass(frozen=True, slots=True)
class _Files:
    path: str
    partition_by: Sequence[str] = ()
    options: Mapping[str, str] = field(default_factory=dict, repr=False)  # may contain passwords
    files: int | None = None  # per batch and partition of the table; None: one per task
    every: str = _SELDOM

    def __post_init__(self) -> None:
        local_path(self.path)  # raises PipelineError for an invalid path
        _check_options(self.options, "path", "checkpointLocation")

    def shape(self, frame: "DataFrame") -> "DataFrame":
        return _in_files(frame, self.files)

    @property
    def directory(self) -> Path | None:
        """The absolute local directory, for executors with another working directory; None for a URL."""
        return local_path(self.path)


@dataclass(frozen=True, slots=True)
class Parquet(_Files):
    """Parquet files, each batch exactly once: Spark keeps a list of valid files beside them.

    Files are not merged later, so a batch is one file by default. Only one query can write to a directory.
    """

    files: int | None = 1
    modes: ClassVar[tuple[str, ...]] = ("append",)

    @property
    def label(self) -> str:
        return f"Parquet files in {self.path}"

    def format(self, _bootstrap: str, /) -> tuple[str, dict[str, str]]:
        path = self.path if self.directory is None else spark_url(self.directory)
        return "parquet", {"path": path, **self.options}


class _Upsertable:
    """A table that rows are appended to, or merged into."""

    __slots__ = ()
    upserts: Upsert | None
    files: int | None

    @property
    @abstractmethod
    def label(self) -> str: ...

    def shape(self, frame: "DataFrame") -> "DataFrame":
        if self.upserts is None:
            return _in_files(frame, self.files)
        from headrace.spark.merge.events import check_events  # noqa: PLC0415  imports Spark

        check_events(frame, self.upserts)
        return frame

    def upsert(
        self,
        *,
        keys: str | Iterable[str],
        sequence_by: str | Iterable[str],
        deletes: "str | Column | None" = None,
        columns: Iterable[str] = (),
        except_columns: Iterable[str] = (),
        history: bool = False,
        tombstones_for: str = TOMBSTONES_FOR,
        unavailable: str = UNAVAILABLE,
    ) -> Self:
        """Return the table as a target of events: each inserts, updates or deletes the row of its `keys`.

        Of several events of a key, also in different batches, the one with the greatest `sequence_by` wins.
        An event that meets the condition `deletes` deletes the row, and the deletion is remembered for
        `tombstones_for`. All columns are written, or only `columns`, or all but `except_columns`. With
        `history` all versions of a row are kept, with columns __START_AT and __END_AT. A value that is the
        placeholder `unavailable` does not replace the one of the row.
        """
        if self.files is not None:
            raise PipelineError(f"{self.label}: upserts determine the number of files: leave `files` out")
        try:
            rules = Upsert.of(
                keys=keys,
                sequence_by=sequence_by,
                deletes=deletes,
                columns=columns,
                except_columns=except_columns,
                history=history,
                tombstones_for=tombstones_for,
                unavailable=unavailable,
            )
        except InvalidOption as error:
            raise PipelineError(f"{self.label}: {error}") from error
        return replace(self, upserts=rules)  # type: ignore[type-var]

    @property
    def modes(self) -> tuple[str, ...]:
        return ("append", "complete") if self.upserts is None else ("append", "update")


@dataclass(frozen=True, slots=True)
class Delta(_Upsertable, _Files):
    """A Delta table, each batch exactly once.

    `evolve=["add"]` adds columns of the rows that the table lacks.
    """

    evolve: Sequence[str] = ()
    compact_every: int | None = None  # batches; None: 50 if the table is in a local directory, else never
    maintenance: Maintenance | None = None  # beside the queries of the pipeline
    upserts: Upsert | None = None

    @property
    def label(self) -> str:
        return f"Delta table {self.path}"

    def format(self, _bootstrap: str, /) -> tuple[str, dict[str, str]]:
        return "headrace-delta", _table_options(self, {"path": str(self.directory or self.path)})

    def maintained(self) -> "Maintained":
        return delta(self.format("")[1])


@dataclass(frozen=True, slots=True)
class Iceberg(_Upsertable):
    """An Iceberg table, each batch exactly once: Iceberg("trucks.positions", {"type": "sql", ...}).

    `partition_by` is the partitioning of a new table: ["day(at)", "bucket(16, id)", "country"].
    `evolve=["add", "widen"]` adds columns that the table lacks, and widens int to bigint and float to double.
    `renames` has new names of the table's columns by their old ones, and `drops` columns to drop from it.
    """

    table: str
    catalog: Mapping[str, str] = field(repr=False)  # may contain passwords
    partition_by: Sequence[str] = ()
    evolve: Sequence[str] = ()
    renames: Mapping[str, str] = field(default_factory=dict)
    drops: Sequence[str] = ()
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    compact_every: int | None = None  # batches; None: 50
    maintenance: Maintenance | None = None  # beside the queries of the pipeline
    files: int | None = None
    every: str = _SELDOM
    upserts: Upsert | None = None

    def __post_init__(self) -> None:
        _check_options(self.options, "path", "checkpointLocation")

    @property
    def label(self) -> str:
        return f"Iceberg table {self.table}"

    def format(self, _bootstrap: str, /) -> tuple[str, dict[str, str]]:
        options = {f"catalog.{name}": value for name, value in self.catalog.items()}
        options = _table_options(self, {**options, "table": self.table})
        if self.renames:
            options["renameColumns"] = ",".join(f"{old}:{new}" for old, new in self.renames.items())
        if self.drops:
            options["dropColumns"] = _listed(self.drops)
        return "headrace-iceberg", options

    def maintained(self) -> "Maintained":
        return iceberg(self.format("")[1])


@dataclass(frozen=True, slots=True)
class Console:
    """The first rows of every batch, on the terminal."""

    rows: int = 20
    every: str = _SOON
    label: str = "the terminal"
    modes: ClassVar[tuple[str, ...]] = _ALL_MODES

    def shape(self, frame: "DataFrame") -> "DataFrame":
        return frame

    def format(self, _bootstrap: str, /) -> tuple[str, dict[str, str]]:
        return "console", {"numRows": str(self.rows), "truncate": "false"}


Target = Topic | Parquet | Delta | Iceberg | Console
"""`every` is the default interval between writes, and `modes` are the supported output modes.

`shape` returns the rows as the format needs them, and `format` Spark's name of the format with its options.
"""


def _check_options(options: Mapping[str, str], *reserved: str) -> None:
    """Raise PipelineError for options that would redirect rows or checkpoints."""
    by_lower = {name.lower(): name for name in options}
    for name in reserved:
        if name.lower() in by_lower:
            instead = {"path": "it is the sink's first argument", "checkpointLocation": "--state says where"}
            raise PipelineError(
                f"option {by_lower[name.lower()]!r} cannot be set for a sink: {instead[name]}"
            )


def _table_options(target: Delta | Iceberg, own: Mapping[str, str]) -> dict[str, str]:
    """Return the options that both formats of tables have, besides those of one of them."""
    options = {**own, **target.options}
    if target.compact_every is not None:
        options.setdefault("compactEvery", str(target.compact_every))
    if target.partition_by:
        options["partitionBy"] = ",".join(target.partition_by)
    if target.evolve:
        options["evolve"] = _listed(target.evolve)
    return options


def _listed(names: Sequence[str]) -> str:
    return names if isinstance(names, str) else ",".join(names)


def _in_files(frame: "DataFrame", files: int | None) -> "DataFrame":
    """Return rows in that many tasks. `coalesce` would also reduce the tasks before."""
    return frame if files is None else frame.repartition(files)
