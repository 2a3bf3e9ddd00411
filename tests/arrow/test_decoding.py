"""Keys and values as columns: by schemas of a registry, as JSON, as text; and rows that do not fit."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry import topic_subject_name_strategy as by_topic
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

import headrace.arrow
from headrace import BadSetting
from headrace.arrow import ReadError, Registry
from support.process import UpProcess
from wire.confluent import make_topic, settings
from wire.requests import fresh_name

AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "item", "type": "string"},
            {"name": "price", "type": ["null", "double"]},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
        ],
    }
)
JSON = json.dumps(
    {
        "title": "Order",
        "type": "object",
        "properties": {"item": {"type": "string"}, "price": {"type": "number"}},
        "required": ["item"],
    }
)
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ORDERS = [
    {"item": "tea", "price": 1.5, "at": AT, "tags": ["hot", "new"]},
    {"item": "milk", "price": None, "at": AT, "tags": []},
]
ORDER = pa.struct(
    [
        ("item", pa.string()),
        ("price", pa.float64()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("tags", pa.list_(pa.field("element", pa.string()))),
    ]
)


@pytest.fixture
def registry(up: UpProcess) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": up.http}) as client:
        yield client


def send(up: UpProcess, values: list[Any], keys: list[Any] | None = None) -> str:
    """Write values, bytes or what a serializer makes of the topic's name, to a new topic."""
    topic = fresh_name("decoded")
    make_topic(up.bootstrap, topic)
    producer = Producer(settings(up.bootstrap))
    for number, value in enumerate(values):
        producer.produce(
            topic, value(topic) if callable(value) else value, keys[number] if keys else None, partition=0
        )
    producer.flush()
    return topic


def by(serializer: Any, value: Any) -> Callable[[str], bytes]:
    return lambda topic: serializer(value, SerializationContext(topic, MessageField.VALUE))


def test_values_are_structs_of_their_avro_schema(up: UpProcess, registry: SchemaRegistryClient) -> None:
    avro = AvroSerializer(registry, AVRO, conf={"subject.name.strategy": by_topic})
    topic = send(up, [by(avro, each) for each in ORDERS] + [None], [b"a", b"b", None])

    reader = headrace.arrow.read(topic, up.bootstrap, schema=up.http)
    found = reader.read_all()

    assert reader.schema.field("value").type == ORDER
    assert reader.schema.field("key").type == pa.binary()
    assert found["value"].to_pylist() == [*ORDERS, None]
    assert found["key"].to_pylist() == [b"a", b"b", None]
    filtered = headrace.arrow.read(
        topic, up.bootstrap, schema=up.http, filter=pc.field("value", "item") == "milk", columns=["offset"]
    )
    assert filtered.read_all().to_pydict() == {"offset": [1]}


def test_values_are_structs_of_their_json_schema(
    up: UpProcess, registry: SchemaRegistryClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    serializer = JSONSerializer(JSON, registry, conf={"subject.name.strategy": by_topic})
    topic = send(up, [by(serializer, {"item": "tea", "price": 2}), by(serializer, {"item": "milk"})])
    monkeypatch.delenv("HEADRACE_REGISTRY", raising=False)  # the brokers know their registry

    found = headrace.arrow.read(topic, up.bootstrap, schema="registry", columns=["value"]).read_all()

    assert found["value"].to_pylist() == [{"item": "tea", "price": 2.0}, {"item": "milk", "price": None}]


def test_rows_that_do_not_fit_are_subject_to_a_policy(up: UpProcess, registry: SchemaRegistryClient) -> None:
    avro = AvroSerializer(registry, AVRO, conf={"subject.name.strategy": by_topic})
    topic = send(up, [by(avro, ORDERS[0]), b"plain", by(avro, ORDERS[1])])

    def items(policy: str) -> list[Any]:
        read = headrace.arrow.read(topic, up.bootstrap, schema=Registry(up.http), on_error=policy)
        return [each and each["item"] for each in read.read_all()["value"].to_pylist()]

    with pytest.raises(ReadError, match=f"value of {topic}-0 offset 1 cannot be decoded: it has no schema"):
        items("fail")
    assert items("null") == ["tea", None, "milk"]
    assert items("skip") == ["tea", "milk"]


def test_json_becomes_columns_of_a_given_schema(up: UpProcess) -> None:
    values = [
        b'{"item": "tea", "price": 1, "at": "2026-01-02T03:04:05Z", "tags": ["a"], "more": {}}',
        b'{\n"item": "milk"\n}',
        b'{"item": 5, "price": "5"} {}',
        b"",
        None,
        b'{"price": "dear"}',
        b'{"item": "tea", "item": "tea"}',
    ]
    topic = send(up, values)
    schema = pa.schema(list(ORDER))

    found = headrace.arrow.read(topic, up.bootstrap, schema=schema, on_error="null").read_all()

    nothing = dict.fromkeys(["item", "price", "at", "tags"])
    assert found["value"].to_pylist() == [
        {"item": "tea", "price": 1.0, "at": AT, "tags": ["a"]},
        {**nothing, "item": "milk"},
        None,
        None,
        None,
        None,
        None,
    ]
    with pytest.raises(ReadError, match="offset 2 cannot be decoded: it is not JSON"):
        headrace.arrow.read(topic, up.bootstrap, schema=schema).read_all()
    with pytest.raises(ReadError, match="it is not JSON: an object has the key 'item' twice"):
        headrace.arrow.read(topic, up.bootstrap, schema=schema, start={0: 6}).read_all()


def test_text_is_utf_8(up: UpProcess) -> None:
    topic = send(up, ["tée".encode(), b"", None, b"\xff"], ["k", "k", "k", "k"])

    found = headrace.arrow.read(topic, up.bootstrap, schema="text", on_error="null").read_all()

    assert found["value"].to_pylist() == ["tée", "", None, None]
    assert found["key"].to_pylist() == ["k"] * 4


def test_a_topic_without_a_schema_is_named(up: UpProcess) -> None:
    with pytest.raises(ReadError, match=f"the registry at {up.http} has no subject skewed-value"):
        headrace.arrow.read("skewed", up.bootstrap, schema=up.http)
    with pytest.raises(BadSetting, match="skewed, shapes are several topics"):
        headrace.arrow.read(["skewed", "shapes"], up.bootstrap, schema=up.http)


def test_records_of_a_newer_schema_are_reported_and_values_that_do_not_fit_are_refused(
    up: UpProcess, registry: SchemaRegistryClient
) -> None:
    old = json.dumps({"type": "object", "properties": {"price": {"type": "integer"}}})

    def written(schema: str, price: float) -> Callable[[str], bytes]:
        def value(topic: str) -> bytes:
            schema_id: int = registry.register_schema(f"{topic}-value", Schema(schema, "JSON"))
            return b"\0" + schema_id.to_bytes(4) + json.dumps({"price": price}).encode()

        return value

    new = old.replace("integer", "number")
    topic = send(up, [written(old, 5), written(new, 7), written(new, 19.99)])
    columns = ["value"]

    with pytest.warns(headrace.arrow.NewerSchemaWarning, match="2 of 3 values have a newer schema"):
        found = headrace.arrow.read(
            topic, up.bootstrap, schema=Registry(up.http, version=1), on_error="null", columns=columns
        ).read_all()
    assert found["value"].to_pylist() == [{"price": 5}, {"price": 7}, None]
    with (
        pytest.warns(headrace.arrow.NewerSchemaWarning),
        pytest.raises(ReadError, match=r"offset 2 cannot be decoded: .* 19\.99 is not an integer"),
    ):
        headrace.arrow.read(topic, up.bootstrap, schema=Registry(up.http, version=1)).read_all()
    latest = headrace.arrow.read(topic, up.bootstrap, schema=up.http, columns=columns).read_all()
    assert latest["value"].to_pylist() == [{"price": 5.0}, {"price": 7.0}, {"price": 19.99}]
