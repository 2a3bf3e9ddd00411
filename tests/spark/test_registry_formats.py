"""Avro, JSON Schema and Protobuf by confluent-kafka's serialisers, two versions each, through a pipeline."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from google.protobuf.json_format import ParseDict  # type: ignore[import-untyped]
from google.protobuf.message_factory import GetMessageClass  # type: ignore[import-untyped]

from headrace.pipeline import Pipeline, Registry
from headrace.pipeline.builder import Builder
from headrace.registry.formats import Schema, SchemaType
from headrace.registry.formats.protobuf.protobuf import parse
from spark.queries import OURS, Queries
from spark.registry_plant import Gateway, serialized
from wire.confluent import make_topic, send

pytestmark = pytest.mark.extended

NOON_MS = 1767268800000
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC).astimezone().replace(tzinfo=None)  # as PySpark tells it
AVRO = [
    """{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}]}""",
    """{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "default": null, "type": ["null",
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]}]}""",
]
JSON = [
    """{"title": "Order", "type": "object", "additionalProperties": false, "required": ["id"],
        "properties": {"id": {"type": "integer"}}}""",
    """{"title": "Order", "type": "object", "additionalProperties": false, "required": ["id"],
        "properties": {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}}""",
]
PROTOBUF = [
    'syntax = "proto3"; message Order { int32 id = 1; }',
    """syntax = "proto3"; message Order { int64 number = 1; repeated Line lines = 2; }
        message Line { string item = 1; }""",
]


def avro_orders(gateway: Gateway) -> Iterator[bytes]:
    old, new = (AvroSerializer(gateway.client, each) for each in AVRO)
    yield serialized(old, "avro", {"id": 1, "at": NOON_MS})
    yield serialized(new, "avro", {"id": 2, "at": NOON_MS, "price": b"\x00\x7d"})


def json_orders(gateway: Gateway) -> Iterator[bytes]:
    old, new = (JSONSerializer(each, gateway.client) for each in JSON)
    yield serialized(old, "json", {"id": 1})
    yield serialized(new, "json", {"id": 2, "at": "2026-01-01T12:00:00Z"})


def protobuf_orders(gateway: Gateway) -> Iterator[bytes]:
    values: list[dict[str, Any]] = [{"id": 1}, {"number": 2, "lines": [{"item": "tea"}]}]
    for text, value in zip(PROTOBUF, values, strict=True):
        schema = parse(Schema(SchemaType.PROTOBUF, text), ())
        kind = GetMessageClass(schema.pool.FindMessageTypeByName("Order"))
        serializer = ProtobufSerializer(kind, gateway.client, {"use.deprecated.format": False})
        yield serialized(serializer, "protobuf", ParseDict(value, kind()))


class Case(NamedTuple):
    """A format: two records, each of a version of its own, the rows they become, and what is unfit."""

    orders: Callable[[Gateway], Iterator[bytes]]
    rows: list[dict[str, Any]]
    unfit: str


CASES = {
    "avro": Case(
        avro_orders,
        [{"id": 1, "at": NOON, "price": None}, {"id": 2, "at": NOON, "price": Decimal("1.25")}],
        "it is not such an Avro record: ",
    ),
    "json": Case(json_orders, [{"id": 1, "at": None}, {"id": 2, "at": NOON}], "it is not JSON: "),
    "protobuf": Case(
        protobuf_orders,
        [{"number": 1, "lines": []}, {"number": 2, "lines": [("tea",)]}],
        "it ends within its message index",
    ),
}


@pytest.mark.parametrize("name", list(CASES))
def test_two_versions_in_a_topic_become_rows_of_the_later_one(
    queries: Queries, gateway: Gateway, name: str
) -> None:
    orders, rows, unfit = CASES[name]
    values = list(orders(gateway))
    bad = [b"no id", b"\0" + (99999).to_bytes(4) + b"x", values[0][:5] + b"\xff\xff"]
    make_topic(queries.bootstrap, name)
    given = [values[0], None, *bad, values[1]]
    send(queries.bootstrap, name, [{"value": each, "partition": 0} for each in given])

    records = queries.table(OURS, subscribe=name)
    found = Registry(gateway.url).settled(name).decode(records["value"])
    columns = [column.alias(each) for each, column in found.columns.items()]
    staged = records.select("offset", *(column.alias(each) for each, column in found.staged.items()))
    decoded = staged.select(*columns, found.reason.alias("why")).orderBy("offset")
    first, none, *unread, last = decoded.collect()

    nothing = dict.fromkeys(rows[0])
    assert [each.asDict() for each in (first, none, last)] == [
        rows[0] | {"why": None},
        nothing | {"why": None},
        rows[1] | {"why": None},
    ]
    assert [each.asDict() for each in unread] == [nothing | {"why": each["why"]} for each in unread]
    assert unread[0]["why"].startswith("it has no schema id: it begins with 0x6e")
    assert unread[1]["why"] == "its schema 99999 is not in the registry"
    assert unread[2]["why"].startswith(unfit)


@pytest.mark.parametrize("bad_rows", ["dead-letter", "fail"])
def test_a_record_is_decoded_once_whatever_is_done_with_its_columns(
    queries: Queries, gateway: Gateway, capsys: pytest.CaptureFixture[str], bad_rows: str
) -> None:
    gateway.register("once-value", AVRO[1])
    pipeline = Pipeline("once")
    source = pipeline.source("orders", topic="once", decode=Registry(gateway.url), bad_rows=bad_rows)
    rows = Builder(queries.spark, pipeline, queries.bootstrap).steps.rows(source)

    chosen = rows.where("price > 1").select("id", "price").where("id > 1")

    chosen.explain()
    plan = capsys.readouterr().out
    assert plan.count("ArrowEvalPython") == 1, plan
