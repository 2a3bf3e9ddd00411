"""What the records of a schema are called."""

import json
from typing import Any

import pytest

from headrace.registry.formats import InvalidSchema, Reference, Schema, SchemaType
from headrace.registry.record_names import RecordNames, record_names
from unit.registry.formats.given import no_references

PROTO = """syntax = "proto3"; package shop;
message Order { map<string, int64> prices = 1; message Line { message Note {} } enum Kind { A = 0; } }
message Basket { message Line {} }
"""


def names_of(type_: SchemaType, text: str) -> RecordNames:
    return record_names(Schema(type_, text), no_references)


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ({"type": "record", "name": "Order", "fields": []}, "Order"),
        ({"type": "record", "name": "Order", "namespace": "com.acme", "fields": []}, "com.acme.Order"),
        ({"type": "record", "name": "org.Order", "namespace": "com.acme", "fields": []}, "org.Order"),
        ({"type": "record", "name": "Order", "namespace": "", "fields": []}, "Order"),
        ({"type": "error", "name": "Failed", "fields": []}, "Failed"),
        ("com.acme.Order", "com.acme.Order"),  # which it refers to
        ("string", None),
        ({"type": "string"}, None),
        ({"type": "enum", "name": "Suit", "symbols": ["A"]}, None),
        ([{"type": "record", "name": "Order", "fields": []}], None),
    ],
)
def test_an_avro_record_has_its_full_name_and_other_types_have_none(schema: Any, name: str | None) -> None:
    found = names_of(SchemaType.AVRO, json.dumps(schema))

    assert found == RecordNames({} if name is None else {(): frozenset({name})})


@pytest.mark.parametrize(("schema", "name"), [({"title": "Person"}, "Person"), ({}, None), (True, None)])
def test_a_json_schema_has_its_title(schema: Any, name: str | None) -> None:
    found = names_of(SchemaType.JSON, json.dumps(schema))

    assert found == RecordNames({} if name is None else {(): frozenset({name})})


def test_a_protobuf_file_has_a_name_at_each_path_with_or_without_the_entries_of_maps() -> None:
    found = names_of(SchemaType.PROTOBUF, PROTO)

    assert found.by_path
    assert found.names == {
        (0,): {"shop.Order"},
        (0, 0): {"shop.Order.Line"},  # as Java counts
        (0, 0, 0): {"shop.Order.Line.Note"},
        (0, 1): {"shop.Order.Line"},  # as Python does: the map's entry is the first
        (0, 1, 0): {"shop.Order.Line.Note"},
        (1,): {"shop.Basket"},
        (1, 0): {"shop.Basket.Line"},
    }


def test_a_protobuf_file_needs_what_it_imports() -> None:
    text = 'syntax = "proto3"; import "item.proto"; message Order { Item item = 1; }'
    schema = Schema(SchemaType.PROTOBUF, text, (Reference("item.proto", "item", 1),))
    item = Schema(SchemaType.PROTOBUF, 'syntax = "proto3"; message Item {}')

    assert record_names(schema, lambda _: item).names == {(0,): {"Order"}}
    with pytest.raises(InvalidSchema):
        record_names(schema, no_references)
