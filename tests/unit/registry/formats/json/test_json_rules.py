"""The rules of compatibility for JSON schemas, a row a rule, as Confluent's registry publishes them."""

from typing import Any

import pytest

from unit.registry.formats.given import json_schema, kinds

D4 = {"$schema": "http://json-schema.org/draft-04/schema#"}
D2019 = {"$schema": "https://json-schema.org/draft/2019-09/schema"}
D2020 = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
CLOSED = {"additionalProperties": False}


def object_(**keywords: Any) -> dict[str, Any]:
    return {"type": "object", **keywords}


def array(**keywords: Any) -> dict[str, Any]:
    return {"type": "array", **keywords}


def with_a(*, required: bool = False, **keywords: Any) -> dict[str, Any]:
    more = {"required": ["a"]} if required else {}
    return object_(properties={"a": keywords.pop("a", STRING)}, **more, **keywords)


WIDENED = {  # old schema, new schema: everything that was valid still is
    "the same": (with_a(), with_a()),
    "anything": (with_a(), {}),
    "anything, said as true": (with_a(), True),
    "nothing, and then something": (False, STRING),
    "words about it": (
        STRING,
        {**STRING, "title": "T", "description": "D", "default": "x", "$id": "http://x/y"},
    ),
    "an integer to a number": (INTEGER, NUMBER),
    "a type to several": (STRING, {"type": ["string", "null"]}),
    "one type in a list": ({"type": ["string"]}, STRING),
    "maxLength up": ({**STRING, "maxLength": 1}, {**STRING, "maxLength": 2}),
    "maxLength gone": ({**STRING, "maxLength": 1}, STRING),
    "minLength down": ({**STRING, "minLength": 2}, {**STRING, "minLength": 1}),
    "a pattern gone": ({**STRING, "pattern": "x"}, STRING),
    "maximum up": ({**NUMBER, "maximum": 1}, {**NUMBER, "maximum": 1.5}),
    "minimum gone": ({**NUMBER, "minimum": 1}, NUMBER),
    "an exclusive maximum up": ({**NUMBER, "exclusiveMaximum": 1}, {**NUMBER, "exclusiveMaximum": 2}),
    "multiples of a divisor": ({**NUMBER, "multipleOf": 6}, {**NUMBER, "multipleOf": 3}),
    "multiples of the same, written otherwise": (
        {**NUMBER, "multipleOf": 0.5},
        {**NUMBER, "multipleOf": 0.50},
    ),
    "an enum with more": ({"enum": ["a"]}, {"enum": ["b", "a"]}),
    "an enum with 1 as 1.0": ({"enum": [1]}, {"enum": [1.0]}),
    "an enum that becomes its type": ({**STRING, "enum": ["a"]}, STRING),
    "a const again": ({"const": {"x": 1, "y": 2}}, {"const": {"y": 2, "x": 1}}),
    "required no more": (with_a(required=True), with_a()),
    "required, with a default": (with_a(), with_a(required=True, a={**STRING, "default": ""})),
    "a property gone from an open object": (with_a(), object_()),
    "a property of anything added to an open object": (object_(), with_a(a={})),
    "a property added to a closed object": (object_(**CLOSED), with_a(**CLOSED)),
    "a required property with a default added to a closed object": (
        object_(**CLOSED),
        with_a(required=True, a={**STRING, "default": ""}, **CLOSED),
    ),
    "a closed object opened": (with_a(**CLOSED), with_a()),
    "a closed object opened for some": (with_a(**CLOSED), with_a(additionalProperties=STRING)),
    "additional properties that take more": (
        object_(additionalProperties=INTEGER),
        object_(additionalProperties=NUMBER),
    ),
    "a property added that takes what was allowed": (
        object_(additionalProperties=STRING),
        with_a(additionalProperties=STRING),
    ),
    "a property gone that is still allowed": (
        with_a(additionalProperties=STRING),
        object_(additionalProperties=STRING),
    ),
    "a property gone that a pattern allows": (
        with_a(**CLOSED),
        object_(patternProperties={"^a": STRING}, **CLOSED),
    ),
    "a property of nothing gone from a closed object": (with_a(a=False, **CLOSED), object_(**CLOSED)),
    "a pattern gone from an open object": (object_(patternProperties={"^a": STRING}), object_()),
    "a pattern that takes more": (
        object_(patternProperties={"^a": INTEGER}),
        object_(patternProperties={"^a": NUMBER}),
    ),
    "a pattern for what a closed object has": (
        with_a(**CLOSED),
        with_a(patternProperties={"^a": STRING}, **CLOSED),
    ),
    "maxProperties up": (object_(maxProperties=1), object_(maxProperties=2)),
    "dependencies on fewer": (object_(dependencies={"a": ["b", "c"]}), object_(dependencies={"a": ["b"]})),
    "dependencies gone": (object_(dependencies={"a": ["b"], "b": with_a()}), object_()),
    "a dependency on a schema that takes more": (
        object_(dependencies={"a": {**STRING, "maxLength": 1}}),
        object_(dependencies={"a": STRING}),
    ),
    "dependencies in new words": (
        {**D2019, **object_(dependencies={"a": ["b"]})},
        {**D2019, **object_(dependentRequired={"a": ["b"]})},
    ),
    "names of any kind": (object_(propertyNames={"maxLength": 5}), object_()),
    "items that take more": (array(items=INTEGER), array(items=NUMBER)),
    "items of anything": (array(items=INTEGER), array()),
    "maxItems up": (array(maxItems=1), array(maxItems=2)),
    "unique no more": (array(uniqueItems=True), array()),
    "an item added to a closed list": (
        array(items=[STRING], additionalItems=False),
        array(items=[STRING, STRING], additionalItems=False),
    ),
    "an item gone from an open list": (array(items=[STRING, STRING]), array(items=[STRING])),
    "an item gone from a list that takes such": (
        array(items=[STRING, STRING], additionalItems=STRING),
        array(items=[STRING], additionalItems=STRING),
    ),
    "an item added that takes what was allowed": (
        {**D2020, **array(prefixItems=[STRING], items=STRING)},
        {**D2020, **array(prefixItems=[STRING, STRING], items=STRING)},
    ),
    "a closed list opened": (array(items=[STRING], additionalItems=False), array(items=[STRING])),
    "contained items no more": (array(contains=STRING), array()),
    "fewer contained items": (
        {**D2019, **array(contains=STRING, minContains=3)},
        {**D2019, **array(contains=STRING, minContains=2)},
    ),
    "anyOf with more": ({"anyOf": [STRING]}, {"anyOf": [STRING, NUMBER]}),
    "anyOf in another order": ({"anyOf": [STRING, NUMBER]}, {"anyOf": [NUMBER, STRING]}),
    "anyOf, each taking more": (
        {"anyOf": [INTEGER, {**STRING, "maxLength": 1}]},
        {"anyOf": [STRING, NUMBER]},
    ),
    "oneOf with more": ({"oneOf": [STRING, INTEGER]}, {"oneOf": [STRING, INTEGER, {"type": "null"}]}),
    "oneOf to anyOf": ({"oneOf": [STRING, INTEGER]}, {"anyOf": [STRING, INTEGER]}),
    "allOf to anyOf": ({"allOf": [STRING, {"maxLength": 1}]}, {"anyOf": [STRING, {"maxLength": 1}]}),
    "allOf with less": ({"allOf": [STRING, {"maxLength": 1}]}, {"allOf": [STRING]}),
    "allOf to one of them": ({"allOf": [STRING, {"maxLength": 1}]}, STRING),
    "allOf with one of them twice": ({"allOf": [STRING]}, {"allOf": [STRING, STRING]}),
    "one to a oneOf with it": (STRING, {"oneOf": [INTEGER, STRING]}),
    "an allOf of one, and that one": ({"allOf": [STRING]}, STRING),
    "not, of less": ({"not": NUMBER}, {"not": INTEGER}),
    "a condition gone": ({**STRING, "if": {"maxLength": 3}, "then": {"pattern": "x"}}, STRING),
    "a condition whose answer takes more": (
        {"if": STRING, "then": {"maxLength": 1}},
        {"if": STRING, "then": {"maxLength": 2}},
    ),
    "unevaluated properties allowed": (
        {**D2020, **object_(unevaluatedProperties=False)},
        {**D2020, **object_()},
    ),
    "what a draft does not know": (
        {**D4, **STRING},
        {**D4, **STRING, "const": "x", "if": 5, "contains": [1]},
    ),
    "another draft": ({**D4, **STRING, "maxLength": 3}, {**D2020, **STRING, "maxLength": 3}),
    "exclusive in draft 4, and later": (
        {**D4, **NUMBER, "maximum": 5, "exclusiveMaximum": True},
        {**D2020, **NUMBER, "exclusiveMaximum": 5},
    ),
    "a maximum no longer exclusive in draft 4": (
        {**D4, **NUMBER, "maximum": 3, "exclusiveMaximum": True},
        {**D4, **NUMBER, "maximum": 3},
    ),
    "a minimum no longer exclusive in draft 4": (
        {**D4, **NUMBER, "minimum": 3, "exclusiveMinimum": True},
        {**D4, **NUMBER, "minimum": 3, "exclusiveMinimum": False},
    ),
    "limits no longer exclusive": (
        {**NUMBER, "exclusiveMinimum": 1, "exclusiveMaximum": 3},
        {**NUMBER, "minimum": 1, "maximum": 3},
    ),
    "limits made exclusive, and further apart": (
        {**NUMBER, "minimum": 1, "maximum": 3},
        {**NUMBER, "exclusiveMinimum": 0.5, "exclusiveMaximum": 3.5},
    ),
    "additionalItems without items, which mean nothing": (
        array(additionalItems=True),
        array(additionalItems=False),
    ),
}

NARROWED = {  # old schema, new schema, why not
    "something, after anything": ({}, STRING, "TYPE_CHANGED"),
    "another type": (STRING, INTEGER, "TYPE_CHANGED"),
    "a number to an integer": (NUMBER, INTEGER, "TYPE_NARROWED"),
    "a type, where others were not refused": ({"maxLength": 1}, {**STRING, "maxLength": 1}, "TYPE_NARROWED"),
    "fewer types": ({"type": ["string", "null"]}, STRING, "TYPE_CHANGED"),
    "maxLength added": (STRING, {**STRING, "maxLength": 1}, "MAX_LENGTH_ADDED"),
    "maxLength down": ({**STRING, "maxLength": 2}, {**STRING, "maxLength": 1}, "MAX_LENGTH_DECREASED"),
    "minLength added": (STRING, {**STRING, "minLength": 1}, "MIN_LENGTH_ADDED"),
    "minLength up": ({**STRING, "minLength": 1}, {**STRING, "minLength": 2}, "MIN_LENGTH_INCREASED"),
    "a pattern added": (STRING, {**STRING, "pattern": "x"}, "PATTERN_ADDED"),
    "another pattern": ({**STRING, "pattern": "x"}, {**STRING, "pattern": "y"}, "PATTERN_CHANGED"),
    "maximum added": (NUMBER, {**NUMBER, "maximum": 1}, "MAXIMUM_ADDED"),
    "maximum down": ({**NUMBER, "maximum": 2}, {**NUMBER, "maximum": 1}, "MAXIMUM_DECREASED"),
    "minimum up": ({**NUMBER, "minimum": 1}, {**NUMBER, "minimum": 2}, "MINIMUM_INCREASED"),
    "an exclusive minimum added": (NUMBER, {**NUMBER, "exclusiveMinimum": 1}, "EXCLUSIVE_MINIMUM_ADDED"),
    "a maximum made exclusive in draft 4": (
        {**D4, **NUMBER, "maximum": 1},
        {**D4, **NUMBER, "maximum": 1, "exclusiveMaximum": True},
        "EXCLUSIVE_MAXIMUM_ADDED",
    ),
    "a minimum made exclusive in draft 4": (
        {**D4, **NUMBER, "minimum": 1},
        {**D4, **NUMBER, "minimum": 1, "exclusiveMinimum": True},
        "EXCLUSIVE_MINIMUM_ADDED",
    ),
    "an exclusive maximum down to one that is not": (
        {**D4, **NUMBER, "maximum": 3, "exclusiveMaximum": True},
        {**D4, **NUMBER, "maximum": 2.5},
        "MAXIMUM_ADDED",
    ),
    "an exclusive minimum up to one that is not": (
        {**NUMBER, "exclusiveMinimum": 1},
        {**NUMBER, "minimum": 1.5},
        "MINIMUM_ADDED",
    ),
    "an exclusive maximum down": (
        {**D4, **NUMBER, "maximum": 3, "exclusiveMaximum": True},
        {**D4, **NUMBER, "maximum": 2, "exclusiveMaximum": True},
        "EXCLUSIVE_MAXIMUM_DECREASED",
    ),
    "multipleOf added": (NUMBER, {**NUMBER, "multipleOf": 2}, "MULTIPLE_OF_ADDED"),
    "multiples of a multiple": (
        {**NUMBER, "multipleOf": 3},
        {**NUMBER, "multipleOf": 6},
        "MULTIPLE_OF_EXPANDED",
    ),
    "multiples of another": ({**NUMBER, "multipleOf": 3}, {**NUMBER, "multipleOf": 2}, "MULTIPLE_OF_CHANGED"),
    "an enum with less": ({"enum": ["a", "b"]}, {"enum": ["a"]}, "ENUM_ARRAY_NARROWED"),
    "an enum with others": ({"enum": ["a"]}, {"enum": ["b"]}, "ENUM_ARRAY_CHANGED"),
    "an enum with true for 1": ({"enum": [1]}, {"enum": [True]}, "ENUM_ARRAY_CHANGED"),
    "another const": ({"const": 1}, {"const": 2}, "ENUM_ARRAY_CHANGED"),
    "an enum for a type": (STRING, {**STRING, "enum": ["a"]}, "TYPE_CHANGED"),
    "required now": (with_a(), with_a(required=True), "REQUIRED_ATTRIBUTE_ADDED"),
    "required, and not described": (object_(), object_(required=["x"]), "REQUIRED_ATTRIBUTE_ADDED"),
    "a property of another type": (with_a(), with_a(a=INTEGER), "TYPE_CHANGED"),
    "a property added to an open object": (
        object_(),
        with_a(),
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
    ),
    "a required property added to an open object": (
        object_(),
        with_a(required=True),
        "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
    ),
    "a required property with a default added to an open object": (
        object_(),
        with_a(required=True, a={**STRING, "default": ""}),
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
    ),
    "a required property added to a closed object": (
        object_(**CLOSED),
        with_a(required=True, **CLOSED),
        "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
    ),
    "a property gone from a closed object": (
        with_a(**CLOSED),
        object_(**CLOSED),
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    ),
    "a property added that takes less than what was allowed": (
        object_(additionalProperties=NUMBER),
        with_a(a=INTEGER, additionalProperties=NUMBER),
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    ),
    "a property gone, where something else is allowed": (
        with_a(additionalProperties=INTEGER),
        object_(additionalProperties=INTEGER),
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    ),
    "a property gone, where a pattern asks for something else": (
        with_a(),
        object_(patternProperties={"^a": INTEGER}),
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    ),
    "an open object closed": (object_(), object_(**CLOSED), "ADDITIONAL_PROPERTIES_REMOVED"),
    "an open object closed to most": (
        object_(),
        object_(additionalProperties=STRING),
        "ADDITIONAL_PROPERTIES_NARROWED",
    ),
    "additional properties that take less": (
        object_(additionalProperties=NUMBER),
        object_(additionalProperties=INTEGER),
        "TYPE_NARROWED",
    ),
    "a pattern added to an open object": (
        object_(),
        object_(patternProperties={"^a": STRING}),
        "PATTERN_PROPERTY_ADDED",
    ),
    "a pattern gone from a closed object": (
        object_(patternProperties={"^a": STRING}, **CLOSED),
        object_(**CLOSED),
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    ),
    "names of a kind": (object_(), object_(propertyNames={"maxLength": 5}), "PROPERTY_NAMES_ADDED"),
    "maxProperties down": (object_(maxProperties=2), object_(maxProperties=1), "MAX_PROPERTIES_DECREASED"),
    "minProperties added": (object_(), object_(minProperties=1), "MIN_PROPERTIES_ADDED"),
    "a dependency added": (object_(), object_(dependencies={"a": ["b"]}), "DEPENDENCY_ARRAY_ADDED"),
    "dependencies on more": (
        object_(dependencies={"a": ["b"]}),
        object_(dependencies={"a": ["b", "c"]}),
        "DEPENDENCY_ARRAY_EXTENDED",
    ),
    "dependencies on others": (
        object_(dependencies={"a": ["b"]}),
        object_(dependencies={"a": ["c"]}),
        "DEPENDENCY_ARRAY_CHANGED",
    ),
    "a dependency on a schema added": (
        {**D2020, **object_()},
        {**D2020, **object_(dependentSchemas={"a": with_a()})},
        "DEPENDENCY_SCHEMA_ADDED",
    ),
    "items of a kind": (array(), array(items=STRING), "SCHEMA_ADDED"),
    "items of another kind": (array(items=STRING), array(items=INTEGER), "TYPE_CHANGED"),
    "maxItems down": (array(maxItems=2), array(maxItems=1), "MAX_ITEMS_DECREASED"),
    "minItems added": (array(), array(minItems=1), "MIN_ITEMS_ADDED"),
    "unique items": (array(), array(uniqueItems=True), "UNIQUE_ITEMS_ADDED"),
    "an item added to an open list": (
        array(items=[STRING]),
        array(items=[STRING, STRING]),
        "ITEM_ADDED_TO_OPEN_CONTENT_MODEL",
    ),
    "an item gone from a closed list": (
        array(items=[STRING, STRING], additionalItems=False),
        array(items=[STRING], additionalItems=False),
        "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    ),
    "an open list closed": (
        array(items=[STRING]),
        array(items=[STRING], additionalItems=False),
        "ADDITIONAL_ITEMS_REMOVED",
    ),
    "contained items wanted": (array(), array(contains=STRING), "CONTAINS_ADDED"),
    "minContains gone, which is one then": (
        {**D2019, **array(contains=STRING, minContains=0)},
        {**D2019, **array(contains=STRING)},
        "MIN_CONTAINS_INCREASED",
    ),
    "anyOf with less": ({"anyOf": [STRING, NUMBER]}, {"anyOf": [STRING]}, "SUM_TYPE_NARROWED"),
    "anyOf with others": (
        {"anyOf": [STRING, NUMBER]},
        {"anyOf": [STRING, {"type": "null"}]},
        "COMBINED_TYPE_SUBSCHEMAS_CHANGED",
    ),
    "anyOf, two taken by the same": (
        {"anyOf": [INTEGER, NUMBER]},
        {"anyOf": [NUMBER, STRING]},
        "COMBINED_TYPE_SUBSCHEMAS_CHANGED",
    ),
    "allOf with more": ({"allOf": [STRING]}, {"allOf": [STRING, {"maxLength": 1}]}, "PRODUCT_TYPE_EXTENDED"),
    "anyOf to allOf": (
        {"anyOf": [STRING, {"maxLength": 1}]},
        {"allOf": [STRING, {"maxLength": 1}]},
        "COMBINED_TYPE_CHANGED",
    ),
    "not, of more": ({"not": INTEGER}, {"not": NUMBER}, "NOT_TYPE_EXTENDED"),
    "another condition": (
        {"if": STRING, "then": {"maxLength": 1}},
        {"if": {}, "then": {"maxLength": 1}},
        "CONDITION_CHANGED",
    ),
    "unevaluated properties refused": (
        {**D2020, **object_()},
        {**D2020, **object_(unevaluatedProperties=False)},
        "UNEVALUATED_PROPERTIES_REMOVED",
    ),
}


@pytest.mark.parametrize(("old", "new"), WIDENED.values(), ids=WIDENED)
def test_a_schema_that_takes_more_is_compatible(old: Any, new: Any) -> None:
    assert kinds(json_schema(new), json_schema(old)) == []


@pytest.mark.parametrize(("old", "new", "why"), NARROWED.values(), ids=NARROWED)
def test_a_schema_that_takes_less_is_not(old: Any, new: Any, why: str) -> None:
    assert why in kinds(json_schema(new), json_schema(old))
