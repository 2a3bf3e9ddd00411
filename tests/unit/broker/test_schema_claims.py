"""What a record's bytes say of its schema, beside what confluent-kafka writes."""

import pytest
from confluent_kafka.schema_registry.common.serde import SchemaId
from hypothesis import given
from hypothesis import strategies as st

from headrace.broker.schema_claims import MOST_STEPS, PREFIX, NoPath, path_at, schema_id


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=MOST_STEPS))
def test_id_and_path_are_those_that_confluent_kafka_has_written(number: int, path: list[int]) -> None:
    written = SchemaId("PROTOBUF", number, message_indexes=path).id_to_bytes() + b"data"

    assert schema_id(written) == number
    assert path_at(written, PREFIX) == tuple(path)


@given(st.binary(max_size=700))
def test_any_bytes_are_a_path_or_none(data: bytes) -> None:
    try:
        path = path_at(data, 0)
    except NoPath:
        return
    assert 1 <= len(path) <= MOST_STEPS
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
    with pytest.raises(NoPath, match=why):
        path_at(data, 0)
