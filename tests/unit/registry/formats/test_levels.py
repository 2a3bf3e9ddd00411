"""The seven levels: who must read whom, and how far back."""

from typing import Any

import pytest

from headrace.registry.formats import Level, Parsed, check
from unit.registry.formats.given import avro, json_schema, proto3


def record(*fields: Any) -> Parsed:
    return avro({"type": "record", "name": "R", "fields": list(fields)})


A, B = {"name": "a", "type": "int"}, {"name": "b", "type": "int"}
B_DEFAULT = {**B, "default": 0}
ONE, BOTH, OPTIONAL = record(A), record(A, B), record(A, B_DEFAULT)

TABLE = [  # earlier schemas, the new one, the levels it may be registered at
    ([], ONE, set(Level)),
    ([ONE], ONE, set(Level)),
    ([ONE], OPTIONAL, set(Level)),
    ([ONE], BOTH, {Level.NONE, Level.FORWARD, Level.FORWARD_TRANSITIVE}),
    ([BOTH], ONE, {Level.NONE, Level.BACKWARD, Level.BACKWARD_TRANSITIVE}),
    (
        [ONE, OPTIONAL],
        BOTH,
        {Level.NONE, Level.BACKWARD, Level.FORWARD, Level.FORWARD_TRANSITIVE, Level.FULL},
    ),
    (
        [BOTH, OPTIONAL],
        ONE,
        {Level.NONE, *(level for level in Level if level.backward), Level.FORWARD, Level.FULL}
        - {Level.FULL_TRANSITIVE},
    ),
]


@pytest.mark.parametrize(("olds", "new", "allowed"), TABLE, ids=range(len(TABLE)))
def test_a_level_says_who_must_read_whom(olds: list[Parsed], new: Parsed, allowed: set[Level]) -> None:
    assert {level for level in Level if not check(new, olds, level)} == allowed


def test_a_refusal_says_what_and_why_and_since_when() -> None:
    messages = check(BOTH, [ONE, OPTIONAL], Level.BACKWARD_TRANSITIVE, versions=[3, 7])

    assert messages == [
        (
            "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'b' at path '/fields/1' "
            "in the new schema has no default value and is missing in the old schema', additionalInfo:'b'}"
        ),
        "{oldSchemaVersion: 3}",
        f"{{oldSchema: '{ONE.canonical}'}}",
        "{compatibility: 'BACKWARD_TRANSITIVE'}",
    ]


def test_the_newest_schema_that_does_not_fit_is_the_one_told_about() -> None:
    messages = check(avro('"string"'), [ONE, BOTH], Level.FULL_TRANSITIVE, versions=[1, 2])

    assert "{oldSchemaVersion: 2}" in messages
    assert not any("oldSchemaVersion: 1" in message for message in messages)


def test_both_directions_are_told_about() -> None:
    messages = check(avro('"string"'), [avro('"int"')], Level.FULL)

    assert "in the new schema does not match the old schema" in messages[0]
    assert "in the old schema does not match the new schema" in messages[1]


def test_a_long_schema_is_cut_short_in_a_message() -> None:
    long = avro({"type": "enum", "name": "E", "symbols": [f"S{number}" for number in range(1000)]})

    messages = check(avro('"string"'), [long], Level.BACKWARD)

    assert len(messages[1]) < 1100
    assert messages[1].startswith("{oldSchema: <truncated> ")


def test_another_format_is_compatible_with_nothing_but_indifference() -> None:
    schemas = [avro('"int"'), json_schema({"type": "integer"}), proto3("message M { int32 a = 1; }")]
    for new in schemas:
        for old in schemas:
            compatible = {level for level in Level if not check(new, [old], level)}
            assert compatible == (set(Level) if new is old else {Level.NONE})
