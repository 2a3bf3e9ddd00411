"""Upserts into Delta tables: tables end equal to the source, whatever the order and repetition of events."""

import dataclasses
import datetime as dt
import random
import threading
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headrace.spark.batch import Batch
from headrace.spark.merge import tombstones
from headrace.spark.merge.upsert import Upsert
from spark.change_events import Change, all_versions, cut, disordered, final_rows, history_of_source
from spark.merged_tables import delta_rows
from spark.table_rows import ROWS, TYPES, plain
from spark.upserting import HISTORY, delta, events, interrupted, merge_all, merge_of

pytestmark = pytest.mark.extended

NOON: Final = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


def inserted(key: int, lsn: int = 1, name: str | None = "a", amount: int | None = 1) -> Change:
    return Change(key, name, amount, "c", lsn)


def deleted(key: int, lsn: int) -> Change:
    return Change(key, None, None, "d", lsn)


def row(change: Change) -> dict[str, Any]:
    return {"id": change.id, "name": change.name, "amount": change.amount, "lsn": change.lsn}


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 8))])
def test_a_history_with_duplicates_and_disorder_ends_equal_to_the_source(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    changes = history_of_source(chance, keys=30, changes=250)
    arrived = disordered(chance, changes, distance=60)
    target = delta(tmp_path, compactEvery=3, targetFileBytes=4000)
    batches = 3 if seed == 1 else 15
    merge_all(target, (events(spark, each) for each in cut(chance, arrived, batches)))

    assert delta_rows(tmp_path) == final_rows(changes)


@pytest.mark.parametrize("seed", [3, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(4, 7))])
def test_all_versions_of_a_history_with_duplicates_and_disorder(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    changes = history_of_source(chance, keys=20, changes=200)
    arrived = disordered(chance, changes, distance=60)
    batches = 2 if seed == 3 else 12
    merge_all(delta(tmp_path), (events(spark, each) for each in cut(chance, arrived, batches)), HISTORY)

    assert delta_rows(tmp_path) == all_versions(changes)


def test_placeholders_keep_values_of_all_types_and_in_every_version(
    spark: SparkSession, tmp_path: Path
) -> None:
    schema = "id int, seq int, op string, text string, data binary, words array<string>, ns array<bigint>"
    placeholder = "__debezium_unavailable_value"
    raw = placeholder.encode()
    known = (["a", "", None], [b"b", b"c", b"d"], [["e"], [], ["f"]], [[1], [2], [3]])
    first = [(1, seq, "c", *(each[seq] for each in known)) for seq in range(2)]
    unchanged = (placeholder, bytearray(raw), [placeholder], list(raw))
    second = [(1, 2, "u", *unchanged), (1, 3, "u", "z", *unchanged[1:]), (1, 4, "u", *unchanged)]
    batches = [spark.createDataFrame(each, schema) for each in (first, second)]
    rules: dict[str, Any] = {"keys": "id", "sequence_by": "seq", "except_columns": ["op"]}

    merge_all(delta(tmp_path / "current"), batches, Upsert.of(**rules))
    merge_all(delta(tmp_path / "all"), batches, Upsert.of(**rules, history=True))

    last = {"text": "z", "data": b"c", "words": [], "ns": [2]}
    assert delta_rows(tmp_path / "current") == [{"id": 1, "seq": 4, **last}]
    versions = delta_rows(tmp_path / "all")
    assert [each["text"] for each in versions] == ["a", "", "", "z", "z"]
    assert [each["data"] for each in versions] == [b"b", b"c", b"c", b"c", b"c"]
    assert [(each["words"], each["ns"]) for each in versions[2:]] == [([], [2])] * 3


def test_a_repeated_batch_is_skipped_and_files_without_its_keys_stay(
    spark: SparkSession, tmp_path: Path
) -> None:
    first, second = [inserted(key) for key in (1, 2, 3)], [inserted(key) for key in (11, 12, 13)]
    merge_all(delta(tmp_path), [events(spark, first), events(spark, second)])
    before = {each["path"]: each["min"]["id"] for each in actions(tmp_path)}
    third = [inserted(12, 2, "new"), inserted(12, 1, "old"), deleted(13, 2), deleted(99, 5)]

    merge_all(delta(tmp_path), [events(spark, third)], first=2)
    version = DeltaTable(tmp_path).version()
    merge_all(delta(tmp_path), [events(spark, second), events(spark, third)], first=1)

    assert DeltaTable(tmp_path).version() == version
    after = {each["path"]: each["min"]["id"] for each in actions(tmp_path)}
    assert sorted(after.values()) == [1, 11]
    assert [path for path, least in before.items() if least == 1] == [
        path for path, least in after.items() if least == 1
    ]
    expected = [*first, second[0], third[0]]
    assert delta_rows(tmp_path) == [row(each) for each in expected]


def actions(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.table(DeltaTable(path).get_add_actions()).to_pylist()
    return found


def test_a_late_event_does_not_bring_a_deleted_row_back_until_the_deletion_is_forgotten(
    spark: SparkSession, tmp_path: Path
) -> None:
    target = delta(tmp_path)

    def merge(number: int, at: dt.datetime, *changes: Change) -> list[int]:
        frame = events(spark, changes)
        merge = dataclasses.replace(merge_of(target, frame), now=lambda: at)
        merge.apply(frame, Batch("query", number))
        return [each["id"] for each in delta_rows(tmp_path)]

    assert merge(0, NOON, inserted(1, 10), deleted(2, 10)) == [1]
    assert merge(1, NOON, deleted(1, 20)) == []
    # The row of a tie is deleted, too: at the same sequence a deletion wins.
    assert merge(2, NOON, inserted(1, 15), inserted(1, 20), inserted(2, 9)) == []
    assert merge(3, NOON + dt.timedelta(days=1), inserted(1, 21), deleted(3, 1)) == [1]
    # Files of expired tombstones leave their table when the next one is written.
    assert merge(4, NOON + dt.timedelta(days=2, minutes=1), deleted(4, 1), inserted(2, 9)) == [1, 2]
    remembered = DeltaTable(tmp_path / "_headrace_tombstones").to_pyarrow_table()
    assert sorted(remembered["id"].to_pylist()) == [3, 4]


@pytest.mark.long
def test_small_files_of_tombstones_are_merged(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tombstones, "MOST_FILES", 1)
    merge_all(delta(tmp_path), [events(spark, [deleted(key, 5)]) for key in range(3)])

    found = DeltaTable(tmp_path / "_headrace_tombstones")
    assert len(found.file_uris()) == 1
    assert sorted(found.to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2]
    merge_all(delta(tmp_path), [events(spark, [inserted(key, 4 + key) for key in range(3)])], first=3)
    assert [each["id"] for each in delta_rows(tmp_path)] == [2]


def test_events_without_a_key_or_a_sequence_stop_the_query(spark: SparkSession, tmp_path: Path) -> None:
    for frame, message in (
        (events(spark, [Change(None, "a", 1, "c", 1)]), "has no key: id is null"),  # type: ignore[arg-type]
        (events(spark, [Change(1, "a", 1, "c", None)]), "has no sequence: lsn is null"),  # type: ignore[arg-type]
    ):
        with pytest.raises(PySparkException, match=message):
            merge_all(delta(tmp_path), [frame])

    assert delta_rows(tmp_path) == []


@pytest.mark.long
def test_rows_of_all_types_survive_that_their_file_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    rules = Upsert.of(keys=["id"], sequence_by="number")
    rows = [each | {"number": 1} for each in ROWS]
    frames = [spark.createDataFrame([each], TYPES) for each in rows]
    one = [rows[0] | {"id": 4}]
    merge_all(
        delta(tmp_path), [frames[0].union(frames[1]), frames[2], spark.createDataFrame(one, TYPES)], rules
    )
    changed = rows[1] | {"number": 2, "text": "changed"}

    merge_all(
        delta(tmp_path, compactEvery=1), [spark.createDataFrame([changed], TYPES)], rules, query="another"
    )

    table = DeltaTable(tmp_path).to_pyarrow_table().sort_by("id")
    assert len(actions(tmp_path)) == 1
    assert list(map(plain, table.to_pylist())) == list(map(plain, [rows[0], changed, rows[2], *one]))


@pytest.mark.long
def test_a_row_moves_to_another_partition(spark: SparkSession, tmp_path: Path) -> None:
    rules = Upsert.of(keys="id", sequence_by="lsn", columns=["id", "name", "lsn"])
    target = delta(tmp_path, partitionBy="name")
    odd = "a b%c/ä'+?=:"
    merge_all(
        target, [events(spark, [inserted(1, 1, odd), inserted(2, 1, odd), inserted(3, 1, None)])], rules
    )

    merge_all(target, [events(spark, [inserted(1, 2, "z"), inserted(3, 2, odd)])], rules, first=1)

    assert delta_rows(tmp_path) == [
        {"id": 1, "name": "z", "lsn": 2},
        {"id": 2, "name": odd, "lsn": 1},
        {"id": 3, "name": odd, "lsn": 2},
    ]


def test_commits_of_other_programs_between_reading_and_committing(
    spark: SparkSession, tmp_path: Path
) -> None:
    merge_all(delta(tmp_path), [events(spark, [inserted(1), inserted(2), inserted(3)])])

    def append(key: int, lsn: int) -> None:
        columns = {"id": [key], "name": ["theirs"], "amount": pa.array([0], pa.int32()), "lsn": [lsn]}
        write_deltalake(str(tmp_path), pa.table(columns), mode="append")

    def delete() -> None:
        DeltaTable(tmp_path).delete("id = 3")

    frame = events(spark, [inserted(2, 5, "ours"), inserted(4, 5, "ours"), inserted(9, 5, "ours")])
    merge = merge_of(delta(tmp_path), frame)
    table = interrupted(
        merge.table,
        lambda: append(100, 1),  # elsewhere: the commit is repeated
        lambda: append(4, 9),  # a newer row of a key of ours: the merge is repeated
        delete,  # from a file that we replace: the merge is repeated
    )
    dataclasses.replace(merge, table=table).apply(frame, Batch("query", 1))

    found = [(each["id"], each["name"], each["lsn"]) for each in delta_rows(tmp_path)]
    assert found == [(1, "a", 1), (2, "ours", 5), (4, "theirs", 9), (9, "ours", 5), (100, "theirs", 1)]


@pytest.mark.long
def test_two_queries_that_merge_into_one_table_at_the_same_time(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(11)
    changes = history_of_source(chance, keys=25, changes=300)
    arrived = disordered(chance, changes, distance=80)
    failed: list[BaseException] = []

    def query(number: int) -> None:
        try:
            frames = [events(spark, each) for each in cut(random.Random(number), arrived[number::2], 6)]
            target = delta(tmp_path, compactEvery=3, targetFileBytes=3000)
            merge_all(target, frames, query=f"query {number}")
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=query, args=(number,)) for number in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert failed == []
    assert delta_rows(tmp_path) == final_rows(changes)
