"""The one pass over a batch's records against the decoder, which is slower and reads everything."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.protocol.batch import HEADER_SIZE, BatchHeader, read_header
from headrace.protocol.errors import InvalidRecord
from headrace.protocol.record_walk import Walked, walk_records
from headrace.protocol.records import Record, decode_batch, encode_batch

TIMES = st.integers(0, 2**40)
DATA = st.none() | st.binary(max_size=80)
RECORDS = st.builds(
    Record, DATA, DATA, st.lists(st.tuples(st.text(max_size=70), DATA), max_size=3).map(tuple), TIMES
)
MANY = 10**6


def decoded(batch: bytearray, header: BatchHeader) -> list[Record] | None:
    """The records, or None if the decoder does not take them."""
    try:
        return list(decode_batch(batch, header))
    except InvalidRecord:
        return None


def walked(batch: bytearray, header: BatchHeader) -> Walked | None:
    try:
        return walk_records(batch[HEADER_SIZE:], header, max_headers=MANY, utf8_names=True)
    except InvalidRecord:
        return None


@given(st.lists(RECORDS, min_size=1, max_size=6))
def test_every_batch_that_is_encoded_is_accepted(records: list[Record]) -> None:
    batch = encode_batch(records)

    found = walked(batch, read_header(batch))

    assert found is not None
    assert found.max_timestamp == max(each.timestamp for each in records)
    assert found.without_key == [number for number, each in enumerate(records) if each.key is None]


@given(st.lists(RECORDS, min_size=1, max_size=6), st.data())
def test_what_is_accepted_can_be_decoded(records: list[Record], data: st.DataObject) -> None:
    batch = encode_batch(records)
    header = read_header(batch)
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(HEADER_SIZE, len(batch) - 1))] = data.draw(st.integers(0, 255))

    found, expected = walked(batch, header), decoded(batch, header)

    if found is not None:
        assert expected is not None
        assert found.max_timestamp == max(-1, *(each.timestamp for each in expected))
        assert found.without_key == [number for number, each in enumerate(expected) if each.key is None]
        assert [each.offset for each in expected] == list(range(len(expected)))
