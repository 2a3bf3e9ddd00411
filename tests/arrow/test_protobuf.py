"""Protobuf that confluent's serializer wrote, as columns: by the registry, by `sql`, with a newer schema."""

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry import topic_subject_name_strategy as by_topic
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

import headrace.arrow
import headrace.polars
from cli.command import Command
from compat.protobuf_messages import messages
from headrace.arrow import ReadError, Registry
from support.process import UpProcess
from wire.confluent import make_topic, settings
from wire.requests import fresh_name

COMMON = 'syntax = "proto3"; package shop; message Item { string name = 1; bytes picture = 2; }'
ORDER = """syntax = "proto3"; package shop;
import "common.proto"; import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";
message Order {
  enum State { NEW = 0; PAID = 5; }
  int64 id = 1; uint64 large = 2; State state = 3; repeated Item items = 4; map<string, int32> counts = 5;
  oneof how { string card = 6; bool cash = 7; } optional double price = 8;
  google.protobuf.Timestamp at = 9; google.protobuf.StringValue note = 10;
}
message Refund { int64 id = 1; }"""
NEWER = ORDER.replace("optional double price = 8;", "optional double price = 8; string added = 11;")
AT = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)


@pytest.fixture
def registry(up: UpProcess) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": up.http}) as client:
        yield client


def send(up: UpProcess, registry: SchemaRegistryClient, topic: str, *values: Any) -> None:
    """Write messages of one class each with confluent's serializer."""
    producer = Producer(settings(up.bootstrap))
    for value in values:
        serialize = ProtobufSerializer(
            type(value), registry, {"subject.name.strategy": by_topic, "use.deprecated.format": False}
        )
        data = serialize(value, SerializationContext(topic, MessageField.VALUE))
        producer.produce(topic, data, partition=0)
    producer.flush()


@pytest.fixture
def topic(up: UpProcess) -> str:
    name = fresh_name("protobuf")
    make_topic(up.bootstrap, name)
    return name


def full_order(kinds: dict[str, Any]) -> Any:
    order = kinds["Order"](id=-(2**63), large=2**64 - 1, state=5, cash=False, price=0.0, counts={"a": 1})
    order.items.add(name="tea", picture=b"\x00\xff")
    order.at.FromDatetime(AT)
    order.note.value = "now"
    return order


def test_values_are_structs_of_their_protobuf_schema(
    up: UpProcess, registry: SchemaRegistryClient, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = messages(tmp_path, common=COMMON, order=ORDER)
    send(up, registry, topic, full_order(kinds), kinds["Order"](card="", state=77), kinds["Order"]())
    monkeypatch.delenv("HEADRACE_REGISTRY", raising=False)  # the brokers know their registry

    reader = headrace.arrow.read(topic, up.bootstrap, schema="registry")
    first, second, third = reader.read_all()["value"].to_pylist()

    assert reader.schema.field("value").type.field("at").type == pa.timestamp("us", tz="UTC")
    assert first == {
        "id": -(2**63),
        "large": 2**64 - 1,
        "state": "PAID",
        "items": [{"name": "tea", "picture": b"\x00\xff"}],
        "counts": [("a", 1)],
        "card": None,
        "cash": False,
        "price": 0.0,
        "at": AT,
        "note": "now",
    }
    assert (second["card"], second["cash"], second["state"], second["price"]) == ("", None, "77", None)
    assert (third["id"], third["state"], third["items"], third["card"]) == (0, "NEW", [], None)
    frame = headrace.polars.scan(topic, up.bootstrap, schema="registry").filter(
        pl.col("value").struct.field("cash").is_not_null()
    )
    assert frame.select("offset").collect()["offset"].to_list() == [0]
    query = f'select value.id as id, value."at" as at, value.items[1].picture as data from "{topic}" limit 1'
    row = Command(up.bootstrap).ok("sql", query, "--json").json
    assert (row["id"], datetime.fromisoformat(row["at"])) == (-(2**63), AT)
    assert base64.b64decode(row["data"]["base64"]) == b"\x00\xff"


def test_old_and_new_records_have_the_columns_of_one_version(
    up: UpProcess, registry: SchemaRegistryClient, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    send(up, registry, topic, full_order(messages(tmp_path / "old", common=COMMON, order=ORDER)))
    newer = messages(tmp_path / "new", common=COMMON, order=NEWER)
    send(up, registry, topic, newer["Order"](added="x"))

    latest = headrace.arrow.read(topic, up.bootstrap, schema=up.http).read_all()["value"].to_pylist()
    with pytest.warns(headrace.arrow.NewerSchemaWarning, match="1 of 2 values have a newer schema"):
        first = headrace.arrow.read(topic, up.bootstrap, schema=Registry(up.http, version=1)).read_all()

    assert [each["added"] for each in latest] == ["", "x"]
    assert "added" not in first.schema.field("value").type.names
    assert [each["id"] for each in first["value"].to_pylist()] == [-(2**63), 0]


def test_messages_of_another_type_are_subject_to_the_policy(
    up: UpProcess, registry: SchemaRegistryClient, topic: str, tmp_path: Path
) -> None:
    kinds = messages(tmp_path, common=COMMON, order=ORDER)
    send(up, registry, topic, kinds["Order"](id=1), kinds["Refund"](id=2))

    with pytest.raises(ReadError, match=r"offset 1 cannot be decoded: it is a shop\.Refund, and the columns"):
        headrace.arrow.read(topic, up.bootstrap, schema=up.http).read_all()
    refunds = Registry(up.http, message="shop.Refund")
    found = headrace.arrow.read(topic, up.bootstrap, schema=refunds, on_error="skip").read_all()
    assert found["value"].to_pylist() == [{"id": 2}]
    with pytest.raises(ReadError, match=r"has no message 'shop\.Nothing', only shop\.Order, shop\.Refund"):
        headrace.arrow.read(topic, up.bootstrap, schema=Registry(up.http, message="shop.Nothing"))
