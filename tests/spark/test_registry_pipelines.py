"""Pipelines that decode by a registry: dead letters, schemas that are new, and a registry that is away."""

import io
import json
from typing import Any

import fastavro
import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType
from pyspark.sql import DataFrame

from cluster.waiting import until
from headrace.cli.pipeline.state import troubles
from headrace.client.schemas.registry import RegistryClient as Client
from headrace.pipeline import Delta, Pipeline, PipelineError, Registry, Topic
from headrace.pipeline.checker import Checker
from headrace.pipeline.plan import plan
from headrace.pipeline.progress import Figures
from spark.registry_plant import PATIENCE_S, RegistryPlant
from wire.confluent import make_topic

pytestmark = pytest.mark.extended

KEY = {"type": "record", "name": "Key", "fields": [{"name": "shop", "type": "string"}]}


def order(*more: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, *more]}


ITEM = {"name": "item", "type": ["null", "string"], "default": None}
PRICE = {"name": "price", "type": ["null", "double"], "default": None}


def record(schema_id: int, schema: dict[str, Any], **value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return b"\0" + schema_id.to_bytes(4) + stream.getvalue()


def declared(name: str, registry: Registry, **source: Any) -> Pipeline:
    pipeline = Pipeline(name)
    pipeline.source("orders", topic=name, decode=registry, **source)

    @pipeline.sink(Topic(f"{name}-out", partitions=1), every="200 milliseconds")
    def out(orders: DataFrame) -> DataFrame:
        return orders.drop("_record")

    return pipeline


def said(registry_plant: RegistryPlant, pipeline: Pipeline) -> dict[str, str]:
    """What `check` says of everything."""
    checker = Checker(
        registry_plant.spark, pipeline, registry_plant.bootstrap, registry_plant.state(pipeline)
    )
    return {each.what: each.says for each in checker.findings()}


@pytest.mark.long
def test_an_id_that_is_new_while_the_registry_is_away_is_waited_for_and_no_row_is_lost(
    registry_plant: RegistryPlant,
) -> None:
    gateway = registry_plant.gateway
    make_topic(registry_plant.bootstrap, "away")
    old, new = (gateway.register("away-value", each) for each in (order(), order(ITEM)))
    key = record(gateway.register("away-key", KEY), KEY, shop="north")
    pipeline = declared("away", Registry(gateway.url), key=Registry(gateway.url))
    registry_plant.feed("away", [record(old, order(), id=1), b"no id"], key=key)
    registry_plant.feed("away", [record(old, order(), id=2)], key=b"no id")
    runner = registry_plant.runner(pipeline)

    def go_on() -> None:
        until("there is a row", lambda: registry_plant.rows("away-out"), timeout_s=PATIENCE_S)
        until("there are letters", lambda: len(registry_plant.reasons("away")) == 2, timeout_s=PATIENCE_S)
        later = gateway.register("away-value", order(ITEM, PRICE))
        gateway.stop()
        registry_plant.feed("away", [record(new, order(ITEM), id=3, item="tea")], key=key)
        registry_plant.feed("away", [record(later, order(ITEM, PRICE), id=4, item="safe", price=9.0)])
        asked = registry_plant.spark.streams.active[0]
        until("a batch waits", lambda: asked.status["isDataAvailable"], timeout_s=PATIENCE_S)
        gateway.start()
        until("all rows are there", lambda: len(registry_plant.rows("away-out")) == 3, timeout_s=PATIENCE_S)

    with registry_plant.beside(runner, go_on):
        runner.run()

    north = {"shop": "north"}
    assert registry_plant.rows("away-out") == [
        {"id": 1, "_key": north},
        {"id": 3, "item": "tea", "_key": north},
        {"id": 4, "item": "safe"},
    ]
    first, second = registry_plant.reasons("away")
    assert first.startswith("it has no schema id: it begins with 0x6e")
    assert second.startswith("its key: it has no schema id: it begins with 0x6e")


@pytest.mark.long
def test_a_registry_that_stays_away_ends_the_pipeline_and_the_next_run_goes_on(
    registry_plant: RegistryPlant,
) -> None:
    gateway = registry_plant.gateway
    make_topic(registry_plant.bootstrap, "gone")
    registry_plant.feed("gone", [record(gateway.register("gone-value", order()), order(), id=1)])
    file = registry_plant.root / "order.avsc"
    file.write_text(json.dumps(order()))  # what the columns are is known without the registry
    registry = Registry(gateway.url, schema=str(file), patience_s=0.5)
    pipeline = declared("gone", registry, bad_rows="drop")

    gateway.stop()
    try:
        with pytest.raises(
            PipelineError, match=r"^gone.out: schema \d+ cannot be fetched: no registry answers at http"
        ):
            registry_plant.run(pipeline)
    finally:
        gateway.start()
    registry_plant.run(pipeline)

    assert registry_plant.rows("gone-out") == [{"id": 1}]


def test_a_new_version_is_taken_up_by_the_next_run_and_has_to_fit_a_table(
    registry_plant: RegistryPlant,
) -> None:
    gateway = registry_plant.gateway
    make_topic(registry_plant.bootstrap, "grown")
    old = gateway.register("grown-value", order())
    pipeline = declared("grown", Registry(gateway.url), bad_rows="drop")
    assert said(registry_plant, pipeline)["source orders"] == "1 partitions of grown; id bigint"
    registry_plant.feed("grown", [record(old, order(), id=1)])
    registry_plant.run(pipeline)

    new = gateway.register("grown-value", order(ITEM))
    registry_plant.feed("grown", [record(new, order(ITEM), id=2, item="tea")])
    registry_plant.run(pipeline)
    assert registry_plant.rows("grown-out") == [{"id": 1}, {"id": 2, "item": "tea"}]

    path = str(registry_plant.root / "table")
    DeltaTable.create(path, Schema([Field("id", PrimitiveType("long"))]))

    @pipeline.sink(Delta(path))
    def table(orders: DataFrame) -> DataFrame:
        return orders.drop("_record")

    found = said(registry_plant, pipeline)
    assert found["source orders"] == "1 partitions of grown; id bigint, item string"
    assert found["sink table"].startswith("column 'item' is not in the table: drop it, set evolve to")
    (source,) = plan(pipeline, registry_plant.bootstrap, registry_plant.state(pipeline)).sources
    assert source.decode == "AVRO of grown-value version 2 (id bigint, item string)"


def test_a_version_that_is_new_while_the_pipeline_runs_is_followed_and_changes_the_table(
    registry_plant: RegistryPlant,
) -> None:
    gateway = registry_plant.gateway
    make_topic(registry_plant.bootstrap, "followed")
    old = gateway.register("followed-value", order())
    registry_plant.feed("followed", [record(old, order(), id=1)])
    path = registry_plant.root / "table"
    pipeline = Pipeline("followed")
    registry = Registry(gateway.url, follow=True)
    pipeline.source("orders", topic="followed", decode=registry, bad_rows="drop")

    @pipeline.sink(Delta(str(path), evolve=["add"]), every="200 milliseconds")
    def table(orders: DataFrame) -> DataFrame:
        return orders.drop("_record")

    def rows() -> list[dict[str, Any]]:
        if not DeltaTable.is_deltatable(str(path)):
            return []
        found: list[dict[str, Any]] = DeltaTable(path).to_pyarrow_table().sort_by("id").to_pylist()
        return found

    def go_on() -> None:
        until("there is a row", lambda: len(rows()) == 1, timeout_s=PATIENCE_S)
        new = gateway.register("followed-value", order(ITEM))
        registry_plant.feed(
            "followed", [record(new, order(ITEM), id=2, item="tea"), record(old, order(), id=3)]
        )
        until("all rows are there", lambda: len(rows()) == 3, timeout_s=PATIENCE_S)

    runner = registry_plant.runner(pipeline)
    with registry_plant.beside(runner, go_on):
        runner.run()

    assert rows() == [{"id": 1, "item": None}, {"id": 2, "item": "tea"}, {"id": 3, "item": None}]
    # The table has the column in the same order, and the query is the same: each batch is there once.
    assert registry_plant.spark.streams.active == []


@pytest.mark.parametrize("bad_rows", ["dead-letter", "drop"])  # a shared query, and one of its own
def test_records_of_a_newer_schema_are_counted_and_values_that_do_not_fit_are_dead_letters(
    registry_plant: RegistryPlant, bad_rows: str
) -> None:
    name, gateway = f"newer-{bad_rows}", registry_plant.gateway
    make_topic(registry_plant.bootstrap, name)
    day = {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None}
    time = {"name": "day", "type": {"type": "long", "logicalType": "timestamp-millis"}}
    old = gateway.register(f"{name}-value", order(day))
    Client(gateway.url).set_level("NONE", f"{name}-value")
    new = gateway.register(f"{name}-value", order(time, ITEM))
    plain = order({"name": "day", "type": ["null", "int"]}), order({"name": "day", "type": "long"}, ITEM)
    records = [
        record(old, plain[0], id=1, day=20_000),
        record(old, plain[0], id=2, day=None),
        record(new, plain[1], id=3, day=1_700_000_000_000, item="tea"),
    ]
    registry_plant.feed(name, records)
    pipeline = declared(name, Registry(gateway.url, version=1), bad_rows=bad_rows)

    registry_plant.run(pipeline)

    assert registry_plant.rows(f"{name}-out") == [{"id": 1, "day": "2024-10-04"}, {"id": 2, "day": None}]
    figures = Figures(f"{name}.out")
    for each in registry_plant.told:
        if each.query == figures.query:
            figures.add(each)
    assert (figures.rows, figures.newer_rows) == (3, 1)
    assert list(troubles(figures)) == [
        f"{name}.out: 1 record of a newer schema than the columns: a restart reads its new fields"
    ]
    if bad_rows == "dead-letter":
        (reason,) = registry_plant.reasons(name)
        assert reason.startswith(
            "day is long (timestamp-millis) in its schema, and a union of null, int (date)"
        )
