"""A Delta table that several programs commit to: every row once. On small tables, without Spark."""

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Field, Schema, TableFeatures, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.schema import PrimitiveType
from pyspark.sql.types import (
    ArrayType,
    DateType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headrace.spark.batch import Batch
from headrace.spark.tables import attempts
from headrace.spark.tables.delta import compaction as delta_compaction
from headrace.spark.tables.delta import log as delta_log
from headrace.spark.tables.delta import table as delta_table
from headrace.spark.tables.delta.compaction import NotCompacted
from headrace.spark.tables.delta.sink import DeltaSink
from headrace.spark.tables.files import arrow_schema
from headrace.spark.tables.options import DeltaOptions, local_directory
from headrace.spark.tables.schema import UnfitTable

SCHEMA = StructType([StructField("id", LongType()), StructField("name", StringType())])
FOUR = [0, 1, 2, 3]
MARKED = CommitProperties(custom_metadata=delta_log.MARK)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "FIRST_PAUSE_S", 0)


@pytest.fixture
def options(tmp_path: Path) -> DeltaOptions:
    """A table with four rows in four files."""
    options = DeltaOptions(path=str(tmp_path / "table"), compact_every=0)
    for n in FOUR:
        write(options, [n], Batch("query", n))
    return options


def rows(ids: list[int]) -> pa.RecordBatch:
    return pa.record_batch({"id": ids, "name": [f"row {n}" for n in ids]})


def write(options: DeltaOptions, ids: list[int], batch: Batch | None, *, overwrite: bool = False) -> None:
    sink = DeltaSink(options, SCHEMA, overwrite=overwrite)
    sink.commit(sink.write(iter([rows(ids)])), batch)


def ids_of(options: DeltaOptions) -> list[int]:
    found: list[int] = sorted(DeltaTable(options.path).to_pyarrow_table()["id"].to_pylist())
    return found


def data_files(options: DeltaOptions) -> set[Path]:
    return set(Path(options.path).rglob("*.parquet")) - set(Path(options.path).glob("_delta_log/*"))


class LateDriver:
    """A driver that has opened the table, and commits after somebody else."""

    def __init__(self, options: DeltaOptions, ids: list[int]) -> None:
        self._options = options
        self._table = delta_table.open_table(options, SCHEMA)
        self._files = DeltaSink(options, SCHEMA, overwrite=False).write(iter([rows(ids)]))

    def commit(self, batch: Batch | None, *, overwrite: bool = False) -> bool:
        return delta_table.add_files(
            self._table,
            self._files,
            reopen=lambda: delta_table.open_table(self._options, SCHEMA),
            overwrite=overwrite,
            batch=batch,
        )


# -- commits of others before ours -------------------------------------------------------------


def others() -> dict[str, tuple[Callable[[DeltaTable], Any], list[int]]]:
    """What another program may do to the table, and the rows that are left of [0, 1, 2, 3]."""
    one = pa.table({"id": [9], "name": ["nine"]})
    return {
        "append": (lambda table: write_deltalake(table, one, mode="append"), [*FOUR, 9]),
        "overwrite": (lambda table: write_deltalake(table, one, mode="overwrite"), [9]),
        "delete": (lambda table: table.delete("id = 0"), [1, 2, 3]),
        "delete all": (lambda table: table.delete(), []),
        "update": (lambda table: table.update({"id": "id + 10"}, predicate="id = 0"), [1, 2, 3, 10]),
        "compact": (lambda table: table.optimize.compact(), FOUR),
        "z-order": (lambda table: table.optimize.z_order(["id"]), FOUR),
        "add a column": (
            lambda table: table.alter.add_columns([Field("more", PrimitiveType("string"))]),
            FOUR,
        ),
        "set a property": (
            lambda table: table.alter.set_table_properties({"delta.appendOnly": "false"}),
            FOUR,
        ),
        "vacuum": (
            lambda table: table.vacuum(
                retention_hours=0, enforce_retention_duration=False, dry_run=False, full=False
            ),
            FOUR,
        ),
    }


@pytest.mark.parametrize("name", others())
def test_a_batch_is_added_once_after_a_commit_of_another_program(options: DeltaOptions, name: str) -> None:
    commit, left = others()[name]
    late = LateDriver(options, [4, 5])
    commit(DeltaTable(options.path))

    assert late.commit(Batch("query", 4))
    assert ids_of(options) == sorted([*left, 4, 5])


@pytest.mark.parametrize("name", others())
def test_a_batch_in_complete_mode_replaces_what_another_program_has_left(
    options: DeltaOptions, name: str
) -> None:
    late = LateDriver(options, [4, 5])
    others()[name][0](DeltaTable(options.path))

    assert late.commit(Batch("query", 4), overwrite=True)
    assert ids_of(options) == [4, 5]


def test_a_batch_is_added_once_after_a_compaction_of_our_own(options: DeltaOptions) -> None:
    late = LateDriver(options, [4, 5])
    assert delta_compaction.merge(options) == (4, 1)

    assert late.commit(Batch("another", 0))
    assert ids_of(options) == [*FOUR, 4, 5]


def test_the_second_of_two_drivers_that_commit_one_batch_finds_it_there(options: DeltaOptions) -> None:
    one, other = LateDriver(options, [4]), LateDriver(options, [4])

    assert one.commit(Batch("query", 4))
    assert other.commit(Batch("query", 4))
    assert ids_of(options) == [*FOUR, 4]


def test_a_table_takes_a_later_batch_and_that_of_another_query(options: DeltaOptions) -> None:
    for n, batch in enumerate((Batch("query", 3), Batch("query", 4), Batch("another", 3), Batch("query", 4))):
        assert LateDriver(options, [10 + n]).commit(batch) is (n in (1, 2))

    assert ids_of(options) == [*FOUR, 11, 12]


def test_a_table_that_has_changed_so_that_rows_no_longer_fit_is_left_alone(options: DeltaOptions) -> None:
    late = LateDriver(options, [4])
    DeltaTable(options.path).alter.add_constraint({"positive": "id >= 0"})

    with pytest.raises(UnfitTable, match=r"delta.constraints.positive"):
        late.commit(Batch("query", 4))
    assert ids_of(options) == FOUR


@pytest.mark.parametrize("batch", [Batch("query", 4), None])
@pytest.mark.parametrize("overwrite", [False, True])
def test_files_stay_when_only_the_answer_to_their_commit_was_lost(
    options: DeltaOptions, monkeypatch: pytest.MonkeyPatch, batch: Batch | None, overwrite: bool
) -> None:
    commit = delta_table.commit_files

    def commit_and_fail(*given: Any, **named: Any) -> None:
        commit(*given, **named)
        raise CommitFailedError("Failed to commit transaction: 0")

    monkeypatch.setattr(delta_table, "commit_files", commit_and_fail)
    write(options, [4], batch, overwrite=overwrite)

    assert ids_of(options) == ([4] if overwrite else [*FOUR, 4])


def test_a_batch_is_known_after_a_checkpoint_when_older_entries_of_the_log_are_gone(
    options: DeltaOptions,
) -> None:
    table = DeltaTable(options.path)
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 seconds"})
    table.create_checkpoint()
    table.cleanup_metadata()
    assert len(list(Path(options.path).glob("_delta_log/*.json"))) <= 1

    write(options, [3], Batch("query", 3))
    write(options, [4], Batch("query", 4))

    assert ids_of(options) == [*FOUR, 4]


# -- compactions -------------------------------------------------------------------------------


def test_a_compaction_changes_neither_rows_nor_metadata_nor_what_is_known_of_batches(
    options: DeltaOptions,
) -> None:
    before = DeltaTable(options.path)
    assert delta_compaction.merge(options) == (4, 1)

    after = DeltaTable(options.path)
    assert ids_of(options) == FOUR
    assert after.version() == before.version() + 1
    assert len(after.file_uris()) == 1
    assert str(after.metadata()) == str(before.metadata())
    assert after.schema() == before.schema()
    assert after.transaction_version("query") == 3
    entry = Path(options.path) / "_delta_log" / f"{after.version():020}.json"
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    files = [each.get("add") or each.get("remove") for each in actions]
    assert {each["dataChange"] for each in files if each} == {False}  # streams that read the table see no row
    assert list(Path(options.path).glob("_delta_log/*.tmp")) == []


@pytest.mark.parametrize("name", [each for each in others() if each != "vacuum"])
def test_a_transaction_of_another_program_fails_that_began_before_our_compaction(
    options: DeltaOptions, name: str
) -> None:
    commit, left = others()[name]
    late = DeltaTable(options.path)
    assert delta_compaction.merge(options) == (4, 1)

    with pytest.raises(CommitFailedError):
        commit(late)
    assert ids_of(options) == FOUR
    commit(DeltaTable(options.path))
    assert ids_of(options) == left


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Have something done right before a compaction commits for the first time."""

    def arrange(action: Callable[[], Any]) -> None:
        commit = delta_compaction._try_commit
        left = [action]

        def commit_later(*given: Any) -> bool:
            while left:
                left.pop()()
            return commit(*given)

        monkeypatch.setattr(delta_compaction, "_try_commit", commit_later)

    return arrange


@pytest.mark.parametrize(
    ("name", "place"),
    [
        *((each, "directory") for each in others() if each not in ("append", "vacuum")),
        ("compact", "file URL"),
        ("compact", "object store"),
    ],
)
def test_a_compaction_gives_way_to_a_commit_of_another_program(
    options: DeltaOptions,
    meanwhile: Callable[[Callable[[], Any]], None],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    place: str,
) -> None:
    if place == "file URL":
        options = DeltaOptions(path=f"file://{options.path}", compact_every=0)
    if place == "object store":
        monkeypatch.setattr(delta_compaction, "local_directory", lambda _: None)
    commit, left = others()[name]
    meanwhile(lambda: commit(DeltaTable(options.path)))

    with pytest.raises(NotCompacted):
        delta_compaction.merge(options)
    assert ids_of(options) == left
    assert DeltaTable(options.path).version() == 5, "there is a commit besides the other program's"


@pytest.mark.parametrize("place", ["directory", "object store"])
def test_of_two_compactions_of_ours_one_is_done(
    options: DeltaOptions,
    meanwhile: Callable[[Callable[[], Any]], None],
    monkeypatch: pytest.MonkeyPatch,
    place: str,
) -> None:
    if place == "object store":
        monkeypatch.setattr(delta_compaction, "local_directory", lambda _: None)
    meanwhile(lambda: delta_compaction.merge(options))
    files = data_files(options)

    with pytest.raises(NotCompacted, match="been removed"):
        delta_compaction.merge(options)
    assert ids_of(options) == FOUR
    assert len(data_files(options) - files) == 1, "the second compaction has left its file"


@pytest.mark.parametrize("place", ["directory", "object store"])
def test_a_compaction_is_done_after_batches_that_others_of_our_queries_have_added_meanwhile(
    options: DeltaOptions,
    meanwhile: Callable[[Callable[[], Any]], None],
    monkeypatch: pytest.MonkeyPatch,
    place: str,
) -> None:
    if place == "object store":
        monkeypatch.setattr(delta_compaction, "local_directory", lambda _: None)
    meanwhile(lambda: write(options, [4], Batch("another", 0)))

    assert delta_compaction.merge(options) == (4, 1)
    assert ids_of(options) == [*FOUR, 4]
    assert len(DeltaTable(options.path).file_uris()) == 2


def test_a_table_that_another_program_writes_to_is_not_compacted_until_it_has_stopped(
    options: DeltaOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    others()["append"][0](DeltaTable(options.path))

    with pytest.raises(NotCompacted, match=r"version 5 is of another program \(WRITE, delta-rs"):
        delta_compaction.merge(options)

    monkeypatch.setattr(delta_compaction, "LOOK_BACK", 2)
    for n in (4, 5):
        write(options, [n], Batch("query", n))
    assert delta_compaction.merge(options) == (7, 1)
    assert ids_of(options) == [*FOUR, 4, 5, 9]


def test_the_reason_why_a_table_is_not_compacted_is_logged(
    options: DeltaOptions, caplog: pytest.LogCaptureFixture
) -> None:
    DeltaTable(options.path).alter.add_feature(
        TableFeatures.DeletionVectors, allow_protocol_versions_increase=True
    )

    delta_compaction.compact(options)

    assert (
        "was not compacted: it has features that this sink does not support (deletionVectors)" in caplog.text
    )


def test_a_checkpoint_is_written_when_a_compaction_is_the_commit_that_is_to_have_one(tmp_path: Path) -> None:
    options = DeltaOptions(path=str(tmp_path / "table"), compact_every=0)
    DeltaTable.create(
        options.path,
        Schema.from_json(SCHEMA.json()),
        configuration={"delta.checkpointInterval": "4"},
        commit_properties=MARKED,
    )
    for n in (0, 1):
        write(options, [n], Batch("query", n))

    assert delta_compaction.merge(options) == (2, 1)
    assert [each.name for each in Path(options.path).glob("_delta_log/*.checkpoint.parquet")] == [
        f"{3:020}.checkpoint.parquet"
    ]
    assert ids_of(options) == [0, 1]


@pytest.mark.parametrize("place", ["directory", "object store"])
def test_parts_of_a_table_are_merged_each_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    if place == "object store":
        monkeypatch.setattr(delta_compaction, "local_directory", lambda _: None)
    schema = StructType([*SCHEMA.fields, StructField("day", DateType())])
    options = DeltaOptions(path=str(tmp_path / "table"), partition_by=("name", "day"), compact_every=0)
    names = ["plain", "a/b c", "50%", "x=y", "ö", None, ""]
    for n in range(3):
        sink = DeltaSink(options, schema, overwrite=False)
        ids = list(range(n * 7, n * 7 + 7))
        batch = pa.record_batch({"id": ids, "name": names, "day": [dt.date(2026, 1, 31)] * 7})
        sink.commit(sink.write(iter([batch])), Batch("query", n))
    before = DeltaTable(options.path).to_pyarrow_table().sort_by("id")

    old, new = delta_compaction.merge(options)
    table = DeltaTable(options.path)

    # deltalake may encode the path of a file in another way than the log, and would not find it.
    assert (old, new) == ((18, 6) if place == "directory" else (6, 2))
    assert table.to_pyarrow_table().sort_by("id") == before
    assert len(table.file_uris()) == 18 - old + new
    assert len(table.to_pyarrow_table(filters=[("name", "=", "a/b c")])) == 3


def test_files_are_merged_that_do_not_have_a_column_of_the_table_yet(options: DeltaOptions) -> None:
    DeltaTable(options.path).alter.add_columns(
        [Field("more", PrimitiveType("string"))], commit_properties=MARKED
    )
    schema = StructType([*SCHEMA.fields, StructField("more", StringType())])
    sink = DeltaSink(options, schema, overwrite=False)
    batch = pa.record_batch({"id": [4], "name": ["row 4"], "more": ["more"]})
    sink.commit(sink.write(iter([batch])), Batch("query", 4))

    assert delta_compaction.merge(options) == (5, 1)
    found = DeltaTable(options.path).to_pyarrow_table().sort_by("id")
    assert found["more"].to_pylist() == [None] * 4 + ["more"]
    assert found["id"].to_pylist() == [*FOUR, 4]


def test_files_of_others_with_other_types_are_left(tmp_path: Path) -> None:
    inner = StructType([StructField("k", StringType())])
    schema = StructType(
        [
            StructField("id", LongType()),
            StructField("at", TimestampType()),
            StructField("l", ArrayType(inner)),
        ]
    )
    options = DeltaOptions(path=str(tmp_path / "table"), compact_every=0)
    at = dt.datetime(2026, 1, 31, 12, 30, tzinfo=dt.UTC)
    columns = arrow_schema(schema)
    for n in range(3):
        sink = DeltaSink(options, schema, overwrite=False)
        batch = pa.RecordBatch.from_pylist([{"id": n, "at": at, "l": [{"k": "x"}, None]}], columns)
        [file] = sink.write(iter([batch]))
        if n == 1:  # as Spark writes times unless told otherwise
            path = Path(options.path) / file.path
            pq.write_table(pa.Table.from_batches([batch]), path, use_deprecated_int96_timestamps=True)
            file = delta_table.DeltaFile(file.path, path.stat().st_size, {}, file.statistics)
        sink.commit([file], Batch("query", n))
    before = DeltaTable(options.path).to_pyarrow_table().sort_by("id")

    assert delta_compaction.merge(options) == (2, 1)
    assert DeltaTable(options.path).to_pyarrow_table().sort_by("id") == before


def test_an_entry_of_the_log_is_never_replaced(options: DeltaOptions) -> None:
    log = Path(options.path) / "_delta_log"
    before = (log / f"{4:020}.json").read_bytes()

    assert not delta_log.put_if_absent(Path(options.path), 4, b"{}")
    assert (log / f"{4:020}.json").read_bytes() == before
    assert sorted(each.name for each in log.iterdir()) == [f"{n:020}.json" for n in range(5)]


@pytest.mark.parametrize(
    ("path", "directory"),
    [
        ("/a/b c", Path("/a/b c")),
        ("file:///a/b%20c", Path("/a/b c")),
        ("s3://bucket/a", None),
        ("file://host/a", None),
    ],
)
def test_only_tables_in_a_local_directory_are_compacted_unless_told_to(
    path: str, directory: Path | None
) -> None:
    assert local_directory(path) == directory
    assert DeltaOptions.of({"path": path}).compact_every == (50 if directory else 0)
    assert DeltaOptions.of({"path": path, "compactEvery": "7"}).compact_every == 7
