"""What a record says of its schema, beside what confluent-kafka writes."""

from uuid import UUID

import pytest
from confluent_kafka.schema_registry.common.serde import SchemaId
from hypothesis import given
from hypothesis import strategies as st

from headrace.registry.schema_ids import (
    HEADERS,
    MAX_STEPS,
    NoSchemaId,
    format_ref,
    read_message_path,
    read_schema_id,
)

VALUE, KEY = HEADERS["value"], HEADERS["key"]
GUID = UUID("0a1b2c3d-0000-1111-2222-333344445555")
paths = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=MAX_STEPS)


@given(st.integers(0, 2**32 - 1), paths)
def test_id_and_path_are_those_that_confluent_kafka_has_written(number: int, path: list[int]) -> None:
    written = SchemaId("PROTOBUF", number, message_indexes=path).id_to_bytes()
    ref, said, end = read_schema_id("value", written + b"data", ())

    assert ref == number
    assert read_message_path(said, end)[0] == tuple(path)


@given(st.uuids(), paths)
def test_so_are_those_in_a_header(guid: UUID, path: list[int]) -> None:
    written = SchemaId("PROTOBUF", guid=str(guid), message_indexes=path).guid_to_bytes()
    ref, said, end = read_schema_id("value", b"data", [(VALUE, written)])

    assert ref == guid.bytes
    assert format_ref(ref) == str(guid)
    assert read_message_path(said, end)[0] == tuple(path)


def test_a_header_counts_more_than_what_the_data_begins_with() -> None:
    by_id, by_guid = b"\0\0\0\0\7", b"\1" + GUID.bytes

    assert read_schema_id("value", by_id, [(VALUE, by_guid)])[0] == GUID.bytes
    assert read_schema_id("value", by_guid, [(VALUE, by_id)])[0] == 7
    assert read_schema_id("value", b"", [(VALUE, by_guid), (VALUE, by_guid)])[0] == GUID.bytes


def test_headers_of_others_and_empty_ones_do_not_count() -> None:
    by_guid = b"\1" + GUID.bytes

    assert read_schema_id("value", b"\0\0\0\0\7", [(KEY, by_guid), (VALUE, None)])[0] == 7
    assert read_schema_id("key", b"\0\0\0\0\7", [(KEY, by_guid), (VALUE, None)])[0] == GUID.bytes


@pytest.mark.parametrize(
    ("data", "headers", "why"),
    [
        (b"", [], "has no schema id: it is empty, expected 00 and an id"),
        (b"\0\0\0\0", [], "has no schema id"),
        (b"\1" + GUID.bytes[:-1], [], "has no schema id"),
        (b"\2" + GUID.bytes, [], "has no schema id"),
        (b"\0\0\0\0\7", [(VALUE, b"")], "has no schema id in the header __value_schema_id"),
        (b"", [(VALUE, b"\1" + GUID.bytes), (VALUE, b"\0\0\0\0\7")], "several headers"),
    ],
)
def test_what_names_no_schema_is_said_so(
    data: bytes, headers: list[tuple[bytes, bytes | None]], why: str
) -> None:
    with pytest.raises(NoSchemaId, match=why):
        read_schema_id("value", data, headers)


@given(st.binary(max_size=700))
def test_any_bytes_are_a_path_or_none(data: bytes) -> None:
    try:
        path, _ = read_message_path(data, 0)
    except NoSchemaId:
        return
    assert 1 <= len(path) <= MAX_STEPS
    assert all(-(2**34) <= step < 2**34 for step in path)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "ends within"),
        (b"\x02", "ends within"),
        (b"\x04\x00", "ends within"),
        (b"\x01", "-1 steps"),
        (b"\xff\xff\xff\xff\x0f", "-2147483648 steps"),
        (b"\xfe\xff\xff\xff\x0f" + b"\0" * 10_000, "2147483647 steps"),
        (b"\xca\x01" + b"\0" * 10_000, "101 steps"),
        (b"\x02" + b"\xff" * 10_000, "more than five bytes"),
    ],
)
def test_what_is_no_path_is_said_so(data: bytes, why: str) -> None:
    with pytest.raises(NoSchemaId, match=why):
        read_message_path(data, 0)
