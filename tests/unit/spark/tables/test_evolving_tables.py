"""Tables whose schema follows that of the batches, beside other writers. Without Spark."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.table import Table
from pyspark.sql.types import StructType, VariantVal

from headrace.spark.batch import Batch
from headrace.spark.tables.delta import table as delta_table
from headrace.spark.tables.delta.compaction import compact
from headrace.spark.tables.delta.sink import DeltaSink
from headrace.spark.tables.evolution import Rules
from headrace.spark.tables.files import arrow_schema, as_schema
from headrace.spark.tables.iceberg import compaction as iceberg_compaction
from headrace.spark.tables.iceberg import table as iceberg_table
from headrace.spark.tables.iceberg.sink import IcebergSink
from headrace.spark.tables.options import DeltaOptions, IcebergOptions
from headrace.spark.tables.schema import UnfitTable

ALL = Rules(add=True, widen=True)
INNER = StructType().add("a", "integer")
WIDER = StructType().add("a", "long").add("b", "string")
FIRST = StructType().add("id", "integer").add("price", "float").add("inner", INNER)
SECOND = StructType().add("id", "long").add("price", "double").add("inner", WIDER).add("item", "string")
ONE = {"id": 1, "price": 1.5, "inner": {"a": 1}}
TWO = {"id": 2**40, "price": 0.1, "inner": {"a": 2**40, "b": "x"}, "item": "tea"}
OLD_AND_NEW = [ONE | {"inner": {"a": 1, "b": None}, "item": None}, TWO]


@pytest.fixture
def iceberg(tmp_path: Path) -> IcebergOptions:
    settings = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
    return IcebergOptions(table="fleet.rows", given_catalog=settings, compact_every=0, evolve=ALL)


@pytest.fixture
def delta(tmp_path: Path) -> DeltaOptions:
    return DeltaOptions(path=str(tmp_path / "table"), compact_every=0, evolve=Rules(add=True, widen=True))


def batch(schema: StructType, *rows: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), arrow_schema(schema))


def write(options: Any, schema: StructType, number: int, *rows: dict[str, Any]) -> None:
    kind: Any = IcebergSink if isinstance(options, IcebergOptions) else DeltaSink
    sink = kind(options, schema, overwrite=False)
    sink.commit(sink.write(iter([batch(schema, *rows)])), Batch("query", number))


def opened(options: IcebergOptions) -> Table:
    from pyiceberg.catalog import load_catalog  # noqa: PLC0415

    return load_catalog("default", **options.catalog).load_table(options.table)


def rows_of(options: Any) -> list[dict[str, Any]]:
    if isinstance(options, IcebergOptions):
        found = opened(options).scan().to_arrow()
    else:
        found = DeltaTable(options.path).to_pyarrow_table()
    rows: list[dict[str, Any]] = found.sort_by("id").to_pylist()
    return rows


def test_an_iceberg_table_gets_new_columns_and_wider_types(iceberg: IcebergOptions) -> None:
    write(iceberg, FIRST, 0, ONE)
    write(iceberg, SECOND, 1, TWO)
    assert rows_of(iceberg) == OLD_AND_NEW

    write(iceberg, FIRST, 2, ONE | {"id": 0})  # a writer that still has the first schema
    assert rows_of(iceberg) == [OLD_AND_NEW[0] | {"id": 0}, *OLD_AND_NEW]


def test_files_of_all_schemas_are_merged(iceberg: IcebergOptions) -> None:
    write(iceberg, FIRST, 0, ONE)
    write(iceberg, SECOND, 1, TWO)
    renamed = replace(iceberg, evolve=Rules(renames={"item": "thing"}))
    thing = StructType().add("id", "long").add("thing", "string")
    write(renamed, thing, 2, {"id": 2**41, "thing": "cup"})
    before = rows_of(iceberg)

    assert iceberg_compaction.merge(opened(iceberg), 1 << 20)[0] == 3

    assert rows_of(iceberg) == before
    assert [row["thing"] for row in before] == [None, "tea", "cup"]
    assert len(list(opened(iceberg).scan().plan_files())) == 1


def test_columns_of_an_iceberg_table_are_renamed_and_dropped_by_rule(iceberg: IcebergOptions) -> None:
    write(iceberg, SECOND, 0, TWO)
    given = StructType().add("id", "long").add("cost", "double").add("inner", WIDER)
    rules = replace(iceberg, evolve=Rules(add=True, renames={"price": "cost"}, drops=("item",)))

    write(rules, given, 1, {"id": 1, "cost": 2.5, "inner": None})

    assert rows_of(iceberg) == [
        {"id": 1, "cost": 2.5, "inner": None},
        {"id": 2**40, "cost": 0.1, "inner": {"a": 2**40, "b": "x"}},
    ]


def test_a_column_that_the_table_is_partitioned_by_is_not_dropped(iceberg: IcebergOptions) -> None:
    by_item = replace(iceberg, partition_by=("truncate(2,item)",))
    write(by_item, SECOND, 0, TWO)
    with pytest.raises(UnfitTable, match="'item' cannot be dropped: the table is partitioned by it"):
        write(replace(iceberg, evolve=Rules(drops=("item",))), StructType().add("id", "long"), 1, {"id": 1})


def test_a_column_that_was_dropped_and_added_again_meanwhile_loses_no_value(iceberg: IcebergOptions) -> None:
    sink = IcebergSink(iceberg, SECOND, overwrite=False)
    files = sink.write(iter([batch(SECOND, TWO)]))
    with opened(iceberg).update_schema() as update:
        update.delete_column("item")

    with pytest.raises(UnfitTable, match=r"'item' has been dropped .* restart the query"):
        IcebergSink(iceberg, SECOND, overwrite=False).commit(files, Batch("query", 0))
    write(iceberg, SECOND, 0, TWO)
    assert rows_of(iceberg) == [TWO]


def test_a_delta_table_gets_new_columns_also_in_structs(delta: DeltaOptions) -> None:
    write(delta, FIRST, 0, ONE)
    inner = StructType().add("a", "integer").add("b", "string")
    more = StructType().add("id", "integer").add("price", "float").add("inner", inner)
    more = more.add("item", "string").add("at", "timestamp_ntz")
    write(delta, more, 1, {"id": 2, "price": 2.5, "inner": {"a": 2, "b": "x"}, "item": "tea", "at": None})
    write(delta, FIRST, 2, ONE | {"id": 3})

    assert [(row["id"], row["inner"], row["item"]) for row in rows_of(delta)] == [
        (1, {"a": 1, "b": None}, None),
        (2, {"a": 2, "b": "x"}, "tea"),
        (3, {"a": 1, "b": None}, None),
    ]
    assert "timestampNtz" in (DeltaTable(delta.path).protocol().writer_features or [])


def test_a_delta_table_that_has_got_columns_is_compacted(delta: DeltaOptions) -> None:
    more = StructType().add("id", "integer").add("item", "string")
    write(delta, StructType().add("id", "integer"), 0, {"id": 1})
    write(delta, more, 1, {"id": 2, "item": "tea"})
    compact(delta)

    assert len(DeltaTable(delta.path).file_uris()) == 1
    assert rows_of(delta) == [{"id": 1, "item": None}, {"id": 2, "item": "tea"}]


def test_a_delta_table_takes_narrower_numbers_and_refuses_wider_ones(delta: DeltaOptions) -> None:
    write(delta, StructType().add("id", "long"), 0, {"id": 2**40})
    write(delta, StructType().add("id", "integer"), 1, {"id": 1})
    assert rows_of(delta) == [{"id": 1}, {"id": 2**40}]

    narrow = replace(delta, path=f"{delta.path}-narrow")
    write(narrow, FIRST, 0, ONE)
    with pytest.raises(UnfitTable, match=r"cannot widen id to bigint: .* typeWidening"):
        write(narrow, SECOND, 1, TWO)
    assert rows_of(narrow) == [ONE]


VALUE = b"\x02\x01\x00\x00\t\x03\x02\x00\x02\x04\x0c\x01\x05x"
VARIANT = {"value": VALUE, "metadata": b"\x01\x01\x00\x01a"}  # {"a": [1, "x"]}


def test_a_delta_table_has_variants_also_in_new_columns_and_after_a_compaction(delta: DeltaOptions) -> None:
    write(delta, StructType().add("id", "integer"), 0, {"id": 0})
    schema = StructType().add("id", "integer").add("v", "variant")
    for n in (1, 2):
        write(delta, schema, n, {"id": n, "v": VARIANT if n == 1 else None})
    before = rows_of(delta)
    table = DeltaTable(delta.path)
    assert "variantType" in (table.protocol().reader_features or [])
    log = "".join(entry.read_text() for entry in Path(delta.path).glob("_delta_log/*.json"))
    assert '"value\\":' not in log, "readers take a variant for one column, without statistics"
    compact(delta)

    assert rows_of(delta) == before
    assert len(DeltaTable(delta.path).file_uris()) == 1
    found = before[1]["v"]
    assert VariantVal(found["value"], found["metadata"]).toPython() == {"a": [1, "x"]}
    assert (before[0]["v"], before[2]["v"]) == (None, None)


def test_a_variant_is_refused_by_an_iceberg_table(iceberg: IcebergOptions) -> None:
    schema = StructType().add("id", "integer").add("in", StructType().add("v", "variant"))
    with pytest.raises(UnfitTable, match=r"'in.v' is variant, .*: store it as text, to_json\(in.v\)"):
        iceberg_table.check_new(iceberg, schema)


@pytest.mark.parametrize("name", ["iceberg", "delta"])
def test_two_writers_that_add_columns_at_the_same_time_both_succeed(
    name: str, request: pytest.FixtureRequest
) -> None:
    options = request.getfixturevalue(name)
    write(options, StructType().add("id", "integer"), 0, {"id": 0})
    opens: Callable[..., Any] = iceberg_table.open_table if name == "iceberg" else delta_table.open_table
    errors: list[BaseException] = []

    def add(column: str) -> None:
        try:
            for n in range(3):
                opens(options, StructType().add("id", "integer").add(f"{column}{n}", "string"))
        except BaseException as error:  # noqa: BLE001  the assertion shows it
            errors.append(error)

    writers = [threading.Thread(target=add, args=(column,)) for column in "abc"]
    for each in writers:
        each.start()
    for each in writers:
        each.join()

    assert errors == []
    assert set(rows_of(options)[0]) == {"id", *(f"{column}{n}" for column in "abc" for n in range(3))}


@pytest.mark.parametrize("name", ["iceberg", "delta"])
def test_without_rules_a_table_does_not_change(name: str, request: pytest.FixtureRequest) -> None:
    options = replace(request.getfixturevalue(name), evolve=Rules())
    write(options, FIRST, 0, ONE)
    with pytest.raises(UnfitTable, match="set evolve"):
        write(options, SECOND, 1, TWO)
    assert rows_of(options) == [ONE]


def test_null_variants_have_no_nulls_inside_wherever_they_are() -> None:
    variant = arrow_schema(StructType().add("v", "variant")).field("v").type
    hollow = pa.StructArray.from_arrays(  # as Spark sends nulls
        [pa.array([None, VALUE], pa.binary()), pa.array([None, VARIANT["metadata"]], pa.binary())],
        fields=list(variant),
        mask=pa.array([True, False]),
    )
    inside = pa.StructArray.from_arrays([hollow], fields=[pa.field("v", variant)])
    batch = pa.record_batch({"v": hollow, "s": inside})

    found = as_schema(batch, batch.schema)

    assert found.to_pylist() == [{"v": None, "s": {"v": None}}, {"v": VARIANT, "s": {"v": VARIANT}}]
    assert found.column("v").field(0).null_count == 0
    assert found.column("s").field(0).field(0).null_count == 0
    listed = pa.record_batch({"l": pa.ListArray.from_arrays([0, 1, 2], hollow)})
    kept = as_schema(listed, listed.schema)
    assert kept.to_pylist() == [{"l": [None]}, {"l": [VARIANT]}]
    assert kept.column("l").values.field(0).null_count == 0
