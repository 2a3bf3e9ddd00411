"""Which records are refused where subjects are named after records."""

from collections.abc import Mapping

import pytest

from headrace.broker.schemas.validation import MOST_NAMED, WrongSchema, check
from headrace.protocol.records import Record, encode_batch
from headrace.registry.record_names import RecordNames
from headrace.registry.schema_ids import SchemaRef
from headrace.registry.validation import KnownSchemas, NotLookedUp, RegisteredSchema, Rule, Strategy

ORDER = RecordNames({(): frozenset({"acme.Order"})})
SHOP = RecordNames({(0,): frozenset({"shop.Order"}), (0, 0): frozenset({"shop.Order.Line"})}, by_path=True)
Schemas = Mapping[SchemaRef, RegisteredSchema]
GUID = bytes(range(16))
SCHEMAS: dict[SchemaRef, RegisteredSchema] = {
    1: RegisteredSchema(frozenset({"acme.Order"}), ORDER),
    2: RegisteredSchema(frozenset({"orders-acme.Order"}), ORDER),
    3: RegisteredSchema(frozenset({"orders-value"}), ORDER),
    4: RegisteredSchema(frozenset({"shop.Order"}), SHOP),
    5: RegisteredSchema(frozenset({"string"}), RecordNames({})),
    6: RegisteredSchema(frozenset({"broken"}), "line 1 " * 1000),
    7: RegisteredSchema(frozenset(), "it is not there"),
    8: RegisteredSchema(frozenset({"x"}), RecordNames({(): frozenset({"n" * 100_000})})),
    GUID: RegisteredSchema(frozenset({"shop.Order"}), SHOP),
}


def framed(schema_id: int, data: bytes = b"data") -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + data


def refused(strategy: Strategy, *values: bytes | None, schemas: Schemas = SCHEMAS) -> list[str]:
    """What is said of each value that is refused."""
    batch = encode_batch([Record(None, value, timestamp=1) for value in values])
    try:
        check("orders", Rule(None, strategy), batch, KnownSchemas((), (), schemas))
    except WrongSchema as error:
        return [why for _, why in error.record_errors]
    return []


@pytest.mark.parametrize(
    ("strategy", "schema_id", "subject"),
    [
        (Strategy.RECORD, 1, None),
        (Strategy.RECORD, 2, "acme.Order"),
        (Strategy.RECORD, 3, "acme.Order"),
        (Strategy.TOPIC_RECORD, 1, "orders-acme.Order"),
        (Strategy.TOPIC_RECORD, 2, None),
        (Strategy.TOPIC_RECORD, 3, "orders-acme.Order"),
    ],
)
def test_a_schema_must_be_registered_under_the_name_of_its_record(
    strategy: Strategy, schema_id: int, subject: str | None
) -> None:
    why = f"its value has schema {schema_id}, which is none of {subject}"

    assert refused(strategy, framed(schema_id), None) == ([] if subject is None else [why])


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\0", None),
        (b"\2\0", None),
        (b"\0 and any data", None),
        (b"\4\0\0", "which is none of shop.Order.Line"),
        (b"\2\2", "which has no message 1"),
        (b"\2\1", "which has no message -1"),
        (b"", "its value ends within its message index"),
        (b"\xca\x01" + b"\0" * 200, "its value has a message index of 101 steps"),
    ],
)
def test_protobuf_data_says_which_message_of_the_file_it_is(data: bytes, why: str | None) -> None:
    said = refused(Strategy.RECORD, framed(4, data))

    assert (said == []) if why is None else (why in said[0])


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (framed(5), "which has no name for its records"),
        (framed(6), "which cannot be parsed: line 1"),
        (framed(7), "its value has schema 7, which is not registered"),
        (b"plain", "its value has no schema id"),
    ],
)
def test_what_has_no_name_is_refused_with_the_reason(value: bytes, why: str) -> None:
    (said,) = refused(Strategy.RECORD, value)

    assert why in said


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"\1" + GUID + b"\0", None),
        (b"\0\0\0\0\4\0", None),
        (b"\1" + GUID + b"\4\0\0", "which is none of shop.Order.Line"),
        (b"\1" + GUID, "its value ends within its message index"),
        (b"\1" + GUID[:-1], "has no schema id in the header"),
    ],
)
def test_a_header_says_it_as_well_as_the_data(said: bytes, why: str | None) -> None:
    record = Record(None, b"", [("other", b"x"), ("__value_schema_id", said)], timestamp=1)
    batch = encode_batch([record])
    if why is None:
        check("orders", Rule(None, Strategy.RECORD), batch, KnownSchemas((), (), SCHEMAS))
    else:
        with pytest.raises(WrongSchema, match=why):
            check("orders", Rule(None, Strategy.RECORD), batch, KnownSchemas((), (), SCHEMAS))


def test_what_strangers_have_written_is_told_in_short() -> None:
    assert all(len(said) < 200 for said in refused(Strategy.RECORD, framed(6), framed(8)))


def test_schemas_that_were_not_looked_up_are_named_before_anything_is_refused() -> None:
    with pytest.raises(NotLookedUp) as missing:
        refused(Strategy.RECORD, framed(1), b"plain", framed(90), framed(91), framed(90))

    assert missing.value.refs == {90, 91}


def test_after_what_was_missing_is_there_nothing_else_is_missing() -> None:
    """However many bad records there are before it."""
    values = [framed(90), *[b"bad"] * (MOST_NAMED + 1), framed(91)]
    with pytest.raises(NotLookedUp) as missing:
        refused(Strategy.RECORD, *values)
    found = dict.fromkeys(missing.value.refs, SCHEMAS[1])

    assert len(refused(Strategy.RECORD, *values, schemas=found)) == MOST_NAMED


def test_keys_and_values_have_rules_of_their_own() -> None:
    rule = Rule(keys=Strategy.RECORD, values=Strategy.TOPIC)
    records = [
        Record(framed(1), framed(3), timestamp=1),
        Record(framed(3), framed(3), timestamp=1),
        Record(framed(1), framed(1), timestamp=1),
    ]
    with pytest.raises(WrongSchema) as wrong:
        check("orders", rule, encode_batch(records), KnownSchemas((), {3}, SCHEMAS))

    assert [place for place, _ in wrong.value.record_errors] == [1, 2]
