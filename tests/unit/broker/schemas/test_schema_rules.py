"""Which records a topic with a rule about schemas refuses."""

import pytest

from headrace.broker.schemas.validation import MOST_NAMED, MOST_RECORDS, WrongSchema, check
from headrace.broker.settings.setting import Value
from headrace.protocol.compression import Compression
from headrace.protocol.errors import InvalidRecord, KafkaError
from headrace.protocol.records import Record, encode_batch
from headrace.registry.validation import KnownSchemas, Rule, Strategy

VALUES, KEYS, BOTH = (
    Rule(keys=None, values=Strategy.TOPIC),
    Rule(keys=Strategy.TOPIC, values=None),
    Rule(keys=Strategy.TOPIC, values=Strategy.TOPIC),
)


GUID = bytes(range(16))
KNOWN = KnownSchemas(keys={3}, values={7, GUID}, schemas={})


def framed(schema_id: int) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + b"data"


def invalid_records(
    rule: Rule, *records: tuple[bytes | None, bytes | None], compression: Compression = Compression.NONE
) -> list[int]:
    batch = encode_batch([Record(key, value, timestamp=1) for key, value in records], compression=compression)
    try:
        check("orders", rule, batch, KNOWN)
    except WrongSchema as error:
        return [place for place, _ in error.record_errors]
    return []


@pytest.mark.parametrize(
    ("rule", "record", "is_wrong"),
    [
        (VALUES, (None, framed(7)), False),
        (VALUES, (b"any key", framed(7)), False),
        (VALUES, (None, None), False),  # a tombstone
        (VALUES, (None, framed(8)), True),
        (VALUES, (None, framed(3)), True),  # the key's
        (VALUES, (None, b""), True),
        (VALUES, (None, b"\0\0\0\0"), True),  # an id is four bytes
        (VALUES, (None, b"\1" + framed(7)[1:]), True),
        (VALUES, (None, b'{"id": 7}'), True),
        (KEYS, (framed(3), b"any value"), False),
        (KEYS, (framed(7), b"any value"), True),
        (BOTH, (framed(3), framed(7)), False),
        (BOTH, (framed(3), framed(3)), True),
    ],
)
def test_a_record_needs_a_schema_of_its_subject(
    rule: Rule, record: tuple[bytes | None, bytes | None], is_wrong: bool
) -> None:
    assert invalid_records(rule, record) == ([0] if is_wrong else [])


@pytest.mark.parametrize("compression", Compression)
def test_every_bad_record_is_named_however_the_batch_is_packed(compression: Compression) -> None:
    good, bad = (None, framed(7)), (None, b"bad")
    assert invalid_records(VALUES, good, bad, good, bad, compression=compression) == [1, 3]


@pytest.mark.parametrize(
    ("name", "said", "is_wrong"),
    [
        ("__value_schema_id", b"\1" + GUID, False),
        ("__value_schema_id", framed(7), False),
        ("__value_schema_id", b"\1" + GUID[::-1], True),
        ("__value_schema_id", framed(3), True),
        ("__value_schema_id", b"", True),
        ("__key_schema_id", b"\1" + GUID, True),  # which is not what is asked for
    ],
)
def test_a_header_may_name_the_schema(name: str, said: bytes, is_wrong: bool) -> None:
    batch = encode_batch([Record(None, b"data", [(name, said)], timestamp=1)])
    if not is_wrong:
        check("orders", VALUES, batch, KNOWN)
        return
    with pytest.raises(WrongSchema):
        check("orders", VALUES, batch, KNOWN)


def test_what_a_fingerprint_is_called_is_told() -> None:
    batch = encode_batch([Record(None, b"\1" + GUID[::-1], timestamp=1)])
    with pytest.raises(WrongSchema, match="schema 0f0e0d0c-0b0a-0908-0706-050403020100, which"):
        check("orders", VALUES, batch, KNOWN)


def test_an_answer_does_not_grow_with_a_strangers_batch() -> None:
    assert len(invalid_records(VALUES, *[(None, b"bad")] * (2 * MOST_NAMED))) == MOST_NAMED


def test_what_is_no_batch_of_records_is_refused_as_well() -> None:
    batch = bytearray(encode_batch([Record(None, framed(7), timestamp=1)]))
    with pytest.raises(KafkaError):
        check("orders", VALUES, batch[:-3], KNOWN)


def test_a_topic_without_a_rule_has_none() -> None:
    settings: dict[str, Value] = {
        "confluent.key.schema.validation": False,
        "confluent.value.schema.validation": False,
        "confluent.key.subject.name.strategy": str(Strategy.TOPIC),
        "confluent.value.subject.name.strategy": str(Strategy.RECORD),
    }
    assert Rule.of(settings) is None
    assert Rule.of(settings | {"confluent.key.schema.validation": True}) == KEYS
    assert Rule.of(settings | {"confluent.value.schema.validation": True}) == Rule(None, Strategy.RECORD)


def test_a_few_bytes_that_unpack_to_millions_of_records_are_not_looked_at() -> None:
    batch = encode_batch([Record(None, None, timestamp=1)] * (MOST_RECORDS + 1), compression=Compression.ZSTD)
    assert len(batch) < MOST_RECORDS
    with pytest.raises(InvalidRecord, match="100,001 records"):
        check("orders", VALUES, batch, KNOWN)
