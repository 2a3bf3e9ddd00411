"""Formats, those of a schema registry among them: confluent's own mock of one plays it."""

from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.serialization import IntegerDeserializer, IntegerSerializer
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]

from headrace.client.errors import BadSetting, NotSerializable
from headrace.client.serializers.formats import BYTES, JSON, STRING, format_of
from headrace.client.serializers.registry import Avro, JsonSchema, Protobuf, avro_schema, client_of

AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "item", "type": "string"}, {"name": "count", "type": "int", "default": 1}],
}
JSON_SCHEMA = {
    "title": "Order",
    "type": "object",
    "properties": {"count": {"type": "integer"}},
    "required": ["count"],
}


@pytest.fixture
def registry() -> SchemaRegistryClient:
    return SchemaRegistryClient.new_client({"url": "mock://"})


def through(written: Any, read: Any, value: object, registry: object = None) -> Any:
    data = format_of(written, registry).serialize(value, "t", "value", None)
    assert isinstance(data, bytes)
    return format_of(read, registry).deserialize(data, "t", "value", None)


def order_class() -> Any:
    """What protoc would make of `message Order { string item = 1; }`."""
    described = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    field = described.message_type.add(name="Order").field.add(name="item", number=1)
    field.type, field.label = field.TYPE_STRING, field.LABEL_OPTIONAL
    pool = descriptor_pool.DescriptorPool()
    pool.Add(described)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_bytes_need_no_format() -> None:
    assert format_of(None) is None
    assert format_of(BYTES) is None


def test_text_and_json_come_back_as_they_were() -> None:
    assert through(STRING, STRING, "größer") == "größer"
    value = {"a": [1, 2.5, None, True], "ß": "€"}
    assert through(JSON, JSON, value) == value


def test_json_is_small_and_readable_and_has_no_nan() -> None:
    assert JSON.serialize({"ä": [1, 2]}, "t", "value", None) == '{"ä":[1,2]}'.encode()
    with pytest.raises(ValueError, match="not JSON compliant"):
        JSON.serialize(float("nan"), "t", "value", None)


def test_functions_and_confluent_s_serialisers_are_formats() -> None:
    assert through(lambda number: b"%d" % number, int, 42) == 42
    assert through(IntegerSerializer(), IntegerDeserializer(), 42) == 42


def test_avro_is_written_with_the_schema_s_id_and_read_without_a_schema(
    registry: SchemaRegistryClient,
) -> None:
    order = {"item": "tea", "count": 3}
    assert through(Avro(AVRO), Avro(), order, registry) == order
    assert registry.get_subjects() == ["t-value"]
    data = Avro(AVRO, registry).serialize(order, "t", "value", None)
    assert data is not None
    assert data[:5] == b"\x00" + registry.get_latest_version("t-value").schema_id.to_bytes(4, "big")


def test_avro_of_an_older_schema_is_read_as_the_newer_has_it(registry: SchemaRegistryClient) -> None:
    older = AVRO | {"fields": AVRO["fields"][:1]}
    assert through(Avro(older), Avro(AVRO), {"item": "tea"}, registry) == {"item": "tea", "count": 1}


def test_json_that_its_schema_forbids_is_not_written(registry: SchemaRegistryClient) -> None:
    assert through(JsonSchema(JSON_SCHEMA), JsonSchema(), {"count": 1}, registry) == {"count": 1}
    with pytest.raises(Exception, match="count"):
        JsonSchema(JSON_SCHEMA, registry).serialize({}, "t", "value", None)


def test_protobuf_comes_back_as_its_class(registry: SchemaRegistryClient) -> None:
    order = order_class()
    assert through(Protobuf(order), Protobuf(order), order(item="tea"), registry) == order(item="tea")
    assert registry.get_latest_version("t-value").schema.schema_type == "PROTOBUF"


def test_a_format_with_a_registry_of_its_own_keeps_it(registry: SchemaRegistryClient) -> None:
    other = SchemaRegistryClient.new_client({"url": "mock://"})
    format_of(Avro(AVRO, registry), other).serialize({"item": "tea", "count": 1}, "t", "key", None)
    assert registry.get_subjects() == ["t-key"]
    assert other.get_subjects() == []


def test_what_is_missing_is_told() -> None:
    with pytest.raises(BadSetting, match="Avro needs a schema registry"):
        format_of(Avro(AVRO))
    with pytest.raises(BadSetting, match="needs a schema for writing"):
        format_of(Avro(), "mock://").serialize({}, "t", "value", None)
    with pytest.raises(BadSetting, match="is not a format"):
        format_of(5)
    with pytest.raises(BadSetting, match="the schema registry"):
        client_of({"url": 5})


def test_python_s_own_types_stand_for_formats() -> None:
    assert format_of(str) is STRING
    assert format_of(bytes) is None


def test_a_class_of_formats_is_made_one_if_it_wants_nothing() -> None:
    assert isinstance(format_of(Avro, "http://r:1"), Avro)
    assert isinstance(format_of(JsonSchema, "http://r:1"), JsonSchema)
    with pytest.raises(BadSetting, match=r"give Protobuf\(\.\.\.\)"):
        format_of(Protobuf, "http://r:1")


def test_a_class_that_is_no_format_is_a_function() -> None:
    assert format_of(int).deserialize(b"5", "orders", "value", None) == 5


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "recor"}, "has an unknown type: recor"),
        ('{"type": "recor"}', "has an unknown type: recor"),
        ("recor", "has an unknown type: recor"),
        ({"type": "record", "fields": []}, "is invalid: .*name"),
        ('{"type":', "is not JSON"),
        (5, "is JSON, as text or as a dict, not 5"),
    ],
)
def test_what_is_no_avro_schema_is_told_where_it_is_given(schema: Any, why: str) -> None:
    with pytest.raises(BadSetting, match=why):
        Avro(schema)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ("string", '"string"'),
        ('"string"', '"string"'),
        ({"type": "string"}, '{"type": "string"}'),
        (["null", "string"], '["null", "string"]'),
        (None, None),
    ],
)
def test_a_schema_is_text_a_dict_or_a_union(schema: Any, text: str | None) -> None:
    assert avro_schema(schema) == text


NESTED_AVRO = {
    "type": "record",
    "name": "Basket",
    "fields": [
        {"name": "owner", "type": "string"},
        {"name": "orders", "type": {"type": "array", "items": AVRO}},
    ],
}
NESTED_JSON_SCHEMA = {
    "title": "Basket",
    "type": "object",
    "required": ["owner"],
    "properties": {"orders": {"type": "array", "items": JSON_SCHEMA}},
}


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        (Avro(NESTED_AVRO), {"orders": []}, "the field owner is missing"),
        (Avro(NESTED_AVRO), {"owner": "a", "orders": [{"count": 1}]}, "the field orders[0].item is missing"),
        (JsonSchema(NESTED_JSON_SCHEMA), {}, "the field owner is missing"),
        (
            JsonSchema(NESTED_JSON_SCHEMA),
            {"owner": "a", "orders": [{"count": 1}, {}]},
            "the field orders[1].count is missing",
        ),
        (
            JsonSchema(NESTED_JSON_SCHEMA),
            {"owner": "a", "orders": [{"count": "many"}]},
            "the field orders[0].count: 'many' is not of type 'integer'",
        ),
    ],
)
def test_a_missing_field_is_named_with_its_path(
    registry: SchemaRegistryClient, schema: Any, value: object, why: str
) -> None:
    with pytest.raises(NotSerializable) as caught:
        format_of(schema, registry).serialize(value, "t", "value", None)
    assert str(caught.value) == f"the value for topic t cannot be written: {why}"


def test_a_missing_field_of_a_protobuf_message_is_named(registry: SchemaRegistryClient) -> None:
    described = descriptor_pb2.FileDescriptorProto(name="basket.proto", package="shop", syntax="proto2")
    basket = described.message_type.add(name="Basket")
    basket.field.add(name="owner", number=1, type=9, label=2)  # a required string
    pool = descriptor_pool.DescriptorPool()
    pool.Add(described)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Basket"))

    with pytest.raises(NotSerializable, match="the field owner is missing"):
        format_of(Protobuf(kind), registry).serialize(kind(), "t", "value", None)


def test_a_value_of_another_type_gets_the_error_of_the_serialiser(registry: SchemaRegistryClient) -> None:
    with pytest.raises(TypeError, match="string on field owner"):
        format_of(Avro(NESTED_AVRO), registry).serialize({"owner": 1, "orders": []}, "t", "value", None)
