"""JSON schemas: what is one, where $ref leads, and its one text."""

from typing import Any

import pytest

from headrace.registry.formats import InvalidSchema
from headrace.registry.formats.compatibility import incompatibilities
from headrace.registry.formats.limits import MAX_DEPTH
from unit.registry.formats.given import json_schema, kinds

D7 = {"$schema": "http://json-schema.org/draft-07/schema#"}
D2020 = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
STRING, INTEGER = {"type": "string"}, {"type": "integer"}


def nested(depth: int) -> str:
    return '{"not":' * depth + "{}" + "}" * depth


INVALID = {
    "not JSON": "{",
    "a list": "[]",
    "a word": '"string"',
    "a type that is none": {"type": "strin"},
    "a type that is none, in a property": {"properties": {"a": {"type": "strin"}}},
    "a length that is none": {"maxLength": -1},
    "draft 4 in draft 7": {**D7, "exclusiveMaximum": True},
    "draft 7 in draft 2020": {**D2020, "items": [STRING]},
    "a $ref to nowhere": {"$ref": "#/definitions/a"},
    "a $ref to no anchor": {"$ref": "#a"},
    "a $ref to what is no schema": {"$ref": "#/title", "title": "x"},
    "a $ref to the network": {"$ref": "http://127.0.0.1:9/schema.json"},
    "a $ref to what is no URI": {"properties": {"a": {"$ref": "http://["}}},
    "a $ref to itself": {"$ref": "#"},
    "a $ref to itself by another": {
        "$ref": "#/definitions/a",
        "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}},
    },
    "a $ref to itself, beside other words": {**D2020, "title": "x", "$ref": "#"},
    "a $ref to a place where nobody looks, with a mistake": {"$ref": "#/x/y", "x": {"y": {"type": "strin"}}},
    "a regular expression that is none": {"patternProperties": {"(": STRING}},
    "too deep": nested(MAX_DEPTH + 1),
    "ten thousand deep": nested(10_000),
    "ten thousand lists deep": "[" * 10_000,
    "a number too large": '{"maximum": 1e999}',
    "a number too long": '{"maximum": ' + "9" * 5000 + "}",
}


@pytest.mark.parametrize("given", INVALID.values(), ids=INVALID)
def test_what_is_no_json_schema_is_refused_with_a_sentence(given: Any) -> None:
    with pytest.raises(InvalidSchema, match=r"\.$"):
        json_schema(given)


def test_the_text_is_kept_in_its_order_without_spaces() -> None:
    schema = json_schema('{ "type" : "object",\n "a": {"z": 1.50, "y": "ü \\u00fc"} }')

    assert schema.canonical == '{"type":"object","a":{"z":1.5,"y":"ü ü"}}'
    assert schema.normalized == '{"a":{"y":"ü ü","z":1.5},"type":"object"}'
    assert schema.formatted("resolved") == schema.canonical


def test_a_schema_of_another_vocabulary_is_read_as_draft_7_and_nothing_is_fetched() -> None:
    schema = {"$schema": "http://127.0.0.1:9/my-own", "items": [STRING]}

    assert kinds(json_schema({**schema, "type": "array"}), json_schema(schema)) == ["TYPE_NARROWED"]


PLACES: dict[
    str, tuple[Any, Any]
] = {  # a schema with @ where a string was and an integer will be; how it is reached
    "definitions": ({"properties": {"a": {"$ref": "#/definitions/s"}}, "definitions": {"s": "@"}}, {}),
    "$defs, in a draft before them": ({"$ref": "#/$defs/s", "$defs": {"s": "@"}}, {}),
    "any other place": ({"$ref": "#/x/0/y~1z", "x": [{"y/z": "@"}]}, {}),
    "an anchor": ({**D2020, "$ref": "#s", "$defs": {"x": {"$anchor": "s", "allOf": ["@"]}}}, {}),
    "an $id": ({"$id": "http://x/a", "$ref": "b", "definitions": {"x": {"$id": "b", "allOf": ["@"]}}}, {}),
    "a reference by its name": ({"$ref": "other.json"}, {"other_json": "@"}),
    "a place in a reference": (
        {"$ref": "other.json#/definitions/s"},
        {"other_json": {"definitions": {"s": "@"}}},
    ),
    "a reference by a name under an $id": (
        {"$id": "http://x/y/a", "$ref": "other.json"},
        {"other_json": "@"},
    ),
    "a reference by its own $id": (
        {"$ref": "http://x/b"},
        {"other_json": {"$id": "http://x/b", "allOf": ["@"]}},
    ),
    "a reference of a reference": ({"$ref": "one.json"}, {"one_json": {"$ref": "two.json"}, "two_json": "@"}),
}


def put(node: Any, schema: Any) -> Any:
    if isinstance(node, dict):
        return {key: put(value, schema) for key, value in node.items()}
    if isinstance(node, list):
        return [put(value, schema) for value in node]
    return schema if node == "@" else node


@pytest.mark.parametrize(("schema", "references"), PLACES.values(), ids=PLACES)
def test_a_change_is_seen_wherever_a_ref_leads(schema: Any, references: Any) -> None:
    old, new = (json_schema(put(schema, type_), **put(references, type_)) for type_ in (STRING, INTEGER))

    assert kinds(old, old) == []
    assert kinds(new, old) != []


def test_beside_a_ref_nothing_counts_until_draft_2019() -> None:
    def limited(draft: Any, length: int) -> Any:
        return json_schema(
            {**draft, "$ref": "#/definitions/s", "maxLength": length, "definitions": {"s": STRING}}
        )

    assert kinds(limited(D7, 1), limited(D7, 2)) == []
    assert kinds(limited(D2020, 1), limited(D2020, 2)) == ["COMBINED_TYPE_SUBSCHEMAS_CHANGED"]


def test_a_tree_is_compared_to_its_leaves_and_no_further() -> None:
    def tree(value: Any) -> Any:
        child = {"type": "array", "items": {"$ref": "#"}}
        return json_schema({"type": "object", "properties": {"value": value, "children": child}})

    assert kinds(tree(STRING), tree(STRING)) == []
    assert kinds(tree(INTEGER), tree(STRING)) == ["TYPE_CHANGED"]


def test_definitions_that_all_refer_to_each_other_are_compared_in_bounded_time() -> None:
    """Walked as a tree, this would have 40^40 leaves."""
    names = [f"d{number}" for number in range(40)]
    every = {name: {"$ref": f"#/definitions/{name}"} for name in names}
    schema = json_schema(
        {"properties": every, "definitions": {name: {"properties": every} for name in names}}
    )

    assert kinds(schema, schema) == []


def test_choices_that_nobody_can_compare_in_time_are_refused() -> None:
    def choices(*numbers: int) -> Any:
        return json_schema({"oneOf": [{"const": number} for number in numbers]})

    assert kinds(choices(*range(1000)), choices(*reversed(range(1000)))) == ["TOO_COMPLEX"]


@pytest.mark.parametrize("keyword", ["enum", "required"])
def test_a_pair_counts_by_what_is_in_it(keyword: str) -> None:
    """The pairs alone, 150 times 150 of them, are few enough."""

    def choices(*numbers: int, size: int) -> Any:
        return json_schema({"anyOf": [{keyword: [f"{n}_{each}" for each in range(size)]} for n in numbers]})

    numbers = range(150)
    small = kinds(choices(*numbers, size=2), choices(*reversed(numbers), size=2))
    large = kinds(choices(*numbers, size=400), choices(*reversed(numbers), size=400))

    assert (small, large) == ([], ["TOO_COMPLEX"])


def test_a_large_enum_may_grow() -> None:
    values = [f"v{number}" for number in range(50_000)]

    assert kinds(json_schema({"enum": [*values, "more"]}), json_schema({"enum": values})) == []


def test_a_name_that_is_long_is_not_repeated_in_full() -> None:
    old = json_schema({"properties": {"n" * 500_000: {"type": "string"}}})
    new = json_schema({"properties": {"n" * 500_000: {"type": "integer"}}})

    (message,) = incompatibilities(new, old)

    assert "TYPE_CHANGED" in message
    assert len(message) < 10_000


def test_many_choices_are_compared_with_themselves() -> None:
    schema = json_schema({"oneOf": [{"const": number} for number in range(3000)]})

    assert kinds(schema, schema) == []


def closed(**keywords: Any) -> Any:
    return json_schema({"type": "object", "additionalProperties": False, **keywords})


def test_a_regular_expression_made_to_hang_does_not() -> None:
    old = closed(properties={"a" * 5000 + "!": STRING})

    assert kinds(closed(patternProperties={"^(a+)+$": STRING}), old) == [
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"
    ]


@pytest.mark.parametrize("pattern", ["(?!b)a", "(a)\\1", "(" + "a{1000}" * 30 + ")"], ids=range(3))
def test_a_regular_expression_that_is_too_much_gets_no_answer(pattern: str) -> None:
    new = closed(patternProperties={pattern: STRING})

    assert kinds(new, new) == []
    assert kinds(new, closed(properties={"a": STRING})) == ["TOO_COMPLEX"]


def test_a_thousand_patterns_for_a_thousand_properties_are_too_many() -> None:
    old = closed(properties={f"a{number}": STRING for number in range(1000)})

    assert kinds(closed(patternProperties={f"^b{number}": STRING for number in range(1000)}), old) == [
        "TOO_COMPLEX"
    ]
