"""Change events of Debezium: decoded, and merged into tables by pipelines."""

import io
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from headrace.pipeline import Debezium, Delta, Json, Pipeline, PipelineError, Registry
from headrace.pipeline.checker import Checker
from headrace.pipeline.progress import Progress
from headrace.pipeline.runner import Runner
from headrace.pipeline.topics import create, missing_topics
from spark.change_events import Change, disordered, envelope, final_rows, history_of_source, json_value
from spark.plant import Plant
from spark.registry_plant import RegistryPlant
from wire.confluent import make_topic, read, send

pytestmark = pytest.mark.extended

ROW = Json("id bigint, name string, amount int")
VALUE = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "amount", "type": ["null", "int"]},
    ],
}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "namespace": "shop.public.customers",
    "fields": [
        {"name": "before", "type": ["null", VALUE]},
        {"name": "after", "type": ["null", "Value"]},
        {
            "name": "source",
            "type": {
                "type": "record",
                "name": "Source",
                "namespace": "io.debezium.connector.postgresql",
                "fields": [
                    {"name": "connector", "type": "string"},
                    {"name": "ts_ms", "type": "long"},
                    {"name": "lsn", "type": ["null", "long"]},
                ],
            },
        },
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"]},
    ],
}


def produce(registry_plant: RegistryPlant, topic: str, values: Sequence[tuple[int, bytes | None]]) -> None:
    """Send values with the keys of their rows, each key to one partition."""
    messages = [{"key": b"%d" % key, "value": value, "partition": key % 2} for key, value in values]
    assert [error for error, _ in send(registry_plant.bootstrap, topic, messages) if error] == []


def customers(name: str, decode: Debezium, path: Path) -> Pipeline:
    pipeline = Pipeline(name)
    pipeline.source("changes", topic=name, decode=decode)
    target = Delta(str(path)).upsert(
        keys="id", sequence_by="lsn", deletes="_op = 'd'", except_columns=["_op"]
    )

    @pipeline.sink(target)
    def table(changes: DataFrame) -> DataFrame:
        return changes.select("id", "name", "amount", "_op", "_source.lsn", "_record")

    return pipeline


def rows_of(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaTable(path).to_pyarrow_table().sort_by("id").to_pylist()
    return found


def test_events_in_json_become_rows_and_what_is_no_event_says_why(spark: SparkSession) -> None:
    insert, delete = Change(1, "a", 5, "c", 10), Change(2, None, None, "d", 11)
    values: list[bytes | None] = [
        json_value(insert, wrapped=False),
        json_value(delete, wrapped=True),
        None,
        json.dumps(envelope(insert) | {"op": "m", "after": None}).encode(),
        b"{nonsense",
        b'{"id": 1, "name": "a"}',
        json.dumps(envelope(insert) | {"after": None}).encode(),
        json.dumps(envelope(delete) | {"before": None}).encode(),
        json.dumps(envelope(insert) | {"op": "t"}).encode(),
        json.dumps(envelope(insert) | {"op": "x"}).encode(),
        json.dumps(envelope(insert) | {"source": {"scn": "10", "commit_scn": "1x"}}).encode(),
        json.dumps(envelope(insert) | {"after": {"id": "one"}}).encode(),
    ]
    rows = spark.createDataFrame(list(enumerate(values)), "n int, value binary").coalesce(1)
    found = Debezium(ROW).settled("topic").decode(rows["value"])
    assert found.skipped is not None
    shown = rows.select(
        "n",
        *(column.alias(name) for name, column in found.columns.items() if name != "_source"),
        found.columns["_source"]["lsn"].alias("lsn"),
        found.columns["_source"]["table"].alias("table"),
        found.reason.alias("why"),
        found.skipped.alias("skipped"),
    ).orderBy("n")

    *good, last = [tuple(each)[1:] for each in shown.collect()]
    assert good[:2] == [
        (1, "a", 5, "c", 10, "customers", None, False),
        (2, None, None, "d", 11, "customers", None, False),
    ]
    assert [(each[-2], each[-1]) for each in good[2:4]] == [(None, True), (None, True)]
    assert [each[-2] for each in good[4:]] == [
        "it is not JSON",
        "it is not a change event: it has no op",
        "it is a change event with op c, and has no after",
        "it is a change event with op d, and has no before",
        "the table was truncated (op t): the event names no rows, and the sinks keep theirs",
        "it has an unknown op: x",
        "its source.commit_scn is not a number",
    ]
    assert last[-2] == f"it is JSON, but not a change event of {ROW.schema}"


def test_a_pipeline_keeps_a_table_equal_to_the_source(registry_plant: RegistryPlant) -> None:
    chance = random.Random(21)
    changes = history_of_source(chance, keys=15, changes=80)
    values: list[tuple[int, bytes | None]] = []
    for each in disordered(chance, changes, distance=40):
        values.append((each.id, json_value(each, wrapped=chance.random() < 0.5)))
        if each.op == "d":
            values.append((each.id, None))
    values.insert(20, (1, b"no event"))
    make_topic(registry_plant.bootstrap, "customers", partitions=2)
    produce(registry_plant, "customers", values)
    path = registry_plant.root / "table"
    pipeline = customers("customers", Debezium(ROW), path)
    checker = Checker(
        registry_plant.spark, pipeline, registry_plant.bootstrap, registry_plant.state(pipeline)
    )
    assert [each for each in checker.findings() if not each.good] == []

    told: list[Progress] = []
    create(pipeline, registry_plant.bootstrap, missing_topics(pipeline, registry_plant.bootstrap))
    state = registry_plant.state(pipeline)
    Runner(registry_plant.spark, pipeline, registry_plant.bootstrap, state, [told.append]).run(
        to_the_end=True
    )

    assert rows_of(path) == final_rows(changes)
    good = [value for _, value in values if value not in (None, b"no event")]
    assert sum(each.written for each in told if each.query == "customers.table") == len(good)
    assert [
        each.value() for each in read(registry_plant.bootstrap, "customers.dead-letters", partitions=[0, 1])
    ] == [b"no event"]
    late = Change(1000, "x", 1, "c", 10_000)
    produce(registry_plant, "customers", [(late.id, json_value(late, wrapped=True)), *values[:20]])
    registry_plant.run(pipeline)
    assert rows_of(path) == final_rows([*changes, late])


def test_positions_of_oracle_are_compared_as_numbers(plant: Plant) -> None:
    def event(name: str, commit_scn: str, scn: str) -> bytes:
        source = {"connector": "oracle", "scn": scn, "commit_scn": commit_scn}
        after = {"id": 1, "name": name, "amount": 0}
        return json.dumps({"op": "u", "before": None, "after": after, "source": source}).encode()

    make_topic(plant.bootstrap, "oracle")
    pipeline = Pipeline("oracle")
    pipeline.source("changes", topic="oracle", decode=Debezium(ROW))
    path = plant.root / "table"

    @pipeline.sink(Delta(str(path)).upsert(keys="id", sequence_by=["commit_scn", "scn"]))
    def table(changes: DataFrame) -> DataFrame:
        return changes.select("id", "name", "_source.commit_scn", "_source.scn")

    plant.feed("oracle", [event("old", "999999", "999998"), event("new", "1000000", "99")])
    plant.run(pipeline)
    assert [row["name"] for row in rows_of(path)] == ["new"]
    late = event("late", "999999", "999999")
    plant.feed("oracle", [late, event("newer", "1000000", "100"), event("late", "1000000", "98")])
    plant.run(pipeline)
    assert [row["name"] for row in rows_of(path)] == ["newer"]


def test_a_value_that_postgresql_has_not_logged_keeps_the_one_of_the_table(plant: Plant) -> None:
    unavailable = "__debezium_unavailable_value"
    changes = [
        Change(1, "document", 1, "c", 1),
        Change(2, None, 1, "c", 2),
        Change(3, "document", 1, "c", 3),
        Change(3, "other", 2, "u", 4),
        Change(3, unavailable, 3, "u", 5),
    ]
    later = [
        Change(1, unavailable, 2, "u", 6),
        Change(1, unavailable, 3, "u", 7),
        Change(2, unavailable, 2, "u", 8),
        Change(3, "third", 4, "u", 9),
        Change(3, unavailable, 5, "u", 10),
        Change(4, unavailable, 1, "u", 11),  # nobody knows it
    ]
    make_topic(plant.bootstrap, "toast")
    path = plant.root / "table"
    pipeline = customers("toast", Debezium(ROW), path)
    for batch in (changes, later, later):
        plant.feed("toast", [json_value(each, wrapped=False) for each in batch])
        plant.run(pipeline)

    assert [(row["id"], row["name"], row["amount"]) for row in rows_of(path)] == [
        (1, "document", 3),
        (2, None, 2),
        (3, "third", 5),
        (4, unavailable, 1),
    ]


@pytest.mark.long
def test_events_in_avro_are_decoded_by_the_registry(registry_plant: RegistryPlant) -> None:
    number = registry_plant.gateway.register("clients-value", ENVELOPE)
    changes = history_of_source(random.Random(5), keys=6, changes=40)

    def value(change: Change) -> bytes:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, fastavro.parse_schema(ENVELOPE), envelope(change))
        return b"\0" + number.to_bytes(4) + stream.getvalue()

    make_topic(registry_plant.bootstrap, "clients", partitions=2)
    produce(registry_plant, "clients", [(each.id, value(each)) for each in reversed(changes)])
    produce(registry_plant, "clients", [(3, None)])
    path = registry_plant.root / "table"
    decoder = Debezium(Registry(registry_plant.gateway.url))

    registry_plant.run(customers("clients", decoder, path))

    assert rows_of(path) == final_rows(changes)
    registry_plant.gateway.register("flat-value", VALUE)
    with pytest.raises(PipelineError, match="is not the envelope of change events: it has no field after"):
        decoder.settled("flat")
