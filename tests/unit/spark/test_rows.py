"""Rows of Arrow batches as records: the same keys, values and headers, in the same order per partition."""

from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.client.errors import NoSuchTopic
from headrace.protocol.ids import TopicPartition
from headrace.spark.errors import SparkError
from unit.spark.arrow_rows import all_of, batch_of, choice_of_kafka_python, contents, decoded, encoder

BYTES: Final = st.none() | st.binary(max_size=40)
PAIRS: Final = st.none() | st.lists(st.tuples(st.text(max_size=8), BYTES), max_size=3)
ROWS: Final = st.lists(st.tuples(BYTES, BYTES, PAIRS), min_size=1, max_size=30)
BINARY: Final = (pa.binary(), pa.large_binary(), pa.binary_view())
TEXT: Final = (pa.string(), pa.large_string(), pa.string_view())


def rows_of(rows: list[Any]) -> pa.RecordBatch:
    keys, values, headers = zip(*rows, strict=True)
    return batch_of(key=keys, value=values, headers=headers)


def plain(rows: list[Any]) -> list[Any]:
    """A record has no way to say that its headers are null: there are none."""
    return [(key, value, headers or []) for key, value, headers in rows]


@settings(deadline=None)
@given(ROWS, st.integers(1, 300))
def test_rows_come_back_as_they_were_whatever_the_size_of_a_batch(rows: list[Any], room: int) -> None:
    pieces = encoder({"orders": 1}, topic="orders", room=room).encoded(rows_of(rows))

    assert all_of(pieces) == {TopicPartition("orders", 0): plain(rows)}


@settings(deadline=None)
@given(ROWS, st.integers(0, 30), st.integers(1, 30))
def test_a_slice_is_encoded_as_if_there_were_nothing_around_it(rows: list[Any], at: int, size: int) -> None:
    part = rows_of(rows).slice(at, size)
    pieces = encoder({"orders": 1}, topic="orders").encoded(part)

    expected = plain(rows[at : at + size])
    assert all_of(pieces) == ({TopicPartition("orders", 0): expected} if expected else {})


@settings(deadline=None)
@given(ROWS, st.lists(st.none() | st.integers(0, 4), min_size=30, max_size=30))
def test_every_partition_has_its_rows_in_their_order(rows: list[Any], wanted: list[int | None]) -> None:
    numbered = [(key, b"%d" % n, headers) for n, (key, _, headers) in enumerate(rows)]
    keys, values, headers = zip(*numbered, strict=True)
    batch = batch_of(key=keys, value=values, headers=headers, partition=wanted[: len(rows)])
    found = all_of(encoder({"orders": 5}, topic="orders", room=100).encoded(batch))

    expected: dict[TopicPartition, list[Any]] = {}
    places = {int(value): place for place, records in found.items() for _, value, _ in records}
    for n, row in enumerate(plain(numbered)):
        expected.setdefault(places[n], []).append(row)
        if wanted[n] is not None:
            assert places[n].partition == wanted[n]
        elif row[0] is not None:
            assert places[n].partition == choice_of_kafka_python(row[0], 5)
    assert found == expected


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), BYTES), min_size=1, max_size=30))
def test_rows_go_to_the_topics_that_their_column_names(rows: list[tuple[str, bytes | None]]) -> None:
    topics, values = zip(*rows, strict=True)
    found = all_of(encoder({"a": 1, "b": 1, "c": 1}).encoded(batch_of(topic=topics, value=values)))

    assert found == {
        TopicPartition(name, 0): [(None, value, []) for topic, value in rows if topic == name]
        for name in set(topics)
    }


@pytest.mark.parametrize("kind", BINARY, ids=str)
def test_bytes_of_any_kind_are_taken(kind: pa.DataType) -> None:
    values = [b"one", None, b"", b"\xff" * 50]
    batch = batch_of({"key": kind, "value": kind}, key=values[::-1], value=values)

    assert all_of(encoder({"t": 1}, topic="t").encoded(batch.slice(1))) == {
        TopicPartition("t", 0): [(b"", None, []), (None, b"", []), (b"one", b"\xff" * 50, [])]
    }


@pytest.mark.parametrize("kind", TEXT, ids=str)
def test_text_of_any_kind_is_written_as_utf_8(kind: pa.DataType) -> None:
    headers = pa.list_(pa.struct([("key", kind), ("value", pa.large_binary())]))
    batch = batch_of(
        {"value": kind, "topic": kind, "headers": headers},
        value=["grün", None, ""],
        topic=["t", "t", "t"],
        headers=[[("ключ", b"1")], [], [("", None)]],
    )

    assert all_of(encoder({"t": 1}).encoded(batch)) == {
        TopicPartition("t", 0): [
            (None, "grün".encode(), [("ключ", b"1")]),
            (None, None, []),
            (None, b"", [("", None)]),
        ]
    }


def test_a_batch_is_as_large_as_it_may_be_and_no_larger() -> None:
    values = [b"v" * (n % 90) for n in range(1000)]
    pieces = list(encoder({"t": 1}, topic="t", room=1000).encoded(batch_of(value=values)))

    sizes = [len(body) for _, body, _ in pieces]
    assert max(sizes) <= 1000
    assert min(sizes[:-1]) > 1000 - 100
    assert sum(count for _, _, count in pieces) == 1000


def test_a_record_larger_than_a_batch_has_one_of_its_own() -> None:
    values = [b"a", b"b" * 100_000, b"c", b"d", b"e" * 300]
    (batches,) = decoded(encoder({"t": 1}, topic="t", room=200).encoded(batch_of(value=values))).values()

    assert [[each.value for each in batch] for batch in batches] == [
        [b"a"],
        [b"b" * 100_000],
        [b"c", b"d"],
        [b"e" * 300],
    ]


def test_no_rows_are_no_records() -> None:
    assert list(encoder({}, topic="t").encoded(batch_of(value=[]))) == []


def test_headers_that_are_all_null_are_none() -> None:
    batch = batch_of(value=[b"1", b"2"], headers=[None, None])

    assert all_of(encoder({"t": 1}, topic="t").encoded(batch)) == {
        TopicPartition("t", 0): [(None, b"1", []), (None, b"2", [])]
    }


def test_what_a_null_hides_is_not_written() -> None:
    """Arrow lets a null have something below it, and a child without a key is no mistake there."""
    below = batch_of(headers=[[("a", b"1"), (None, b"hidden"), ("c", b"3")]]).column(0).values
    headers = pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3], pa.int32()), below, mask=pa.array([False, True, False])
    )
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"x", b"y", b"z"]), "headers": headers})

    (batches,) = decoded(encoder({"t": 1}, topic="t").encoded(batch)).values()
    assert [each[2] for each in contents(batches[0])] == [[("a", b"1")], [], [("c", b"3")]]


def test_the_option_counts_more_than_the_column() -> None:
    batch = batch_of(value=[b"1", b"2"], topic=["elsewhere", None])

    assert set(all_of(encoder({"t": 1}, topic="t").encoded(batch))) == {TopicPartition("t", 0)}


def test_rows_without_a_key_go_elsewhere_with_every_batch() -> None:
    rows = encoder({"t": 3}, topic="t", turn=2)
    places = [place.partition for _ in range(4) for place, _, _ in rows.encoded(batch_of(value=[b"x"]))]

    assert places == [2, 0, 1, 2]


HEADER: Final = pa.struct([("key", pa.string()), ("value", pa.binary())])
MISTAKES: Final[dict[str, tuple[pa.RecordBatch, str]]] = {
    "no such partition": (
        batch_of(topic=["a", "b"], partition=[2, 3], value=[b"", b""]),
        "a row wants partition 3 of b, which has 3: from 0 to 2",
    ),
    "less than no partition": (
        batch_of(topic=["a"], partition=[-1], value=[b""]),
        "a row wants partition -1 of a, which has 3: from 0 to 2",
    ),
    "no topic": (
        batch_of(topic=["a", None], value=[b"", b""]),
        "a row has no topic: fill the column 'topic', or set the option topic",
    ),
    "a topic that is not there": (
        batch_of(topic=["a", "c"], value=[b"", b""]),
        "there is no topic 'c': create it (headrace topic create c), or correct the name",
    ),
    "a header without a key": (
        batch_of(topic=["a"], value=[b""], headers=[[("k", b"v"), (None, b"v")]]),
        "a header has no key: fill it, or leave the header out",
    ),
    "a header that is null": (
        batch_of(topic=["a"], value=[b""]).append_column(
            "headers", pa.array([[{"key": "k", "value": b"v"}, None]], pa.list_(HEADER))
        ),
        "a header has no key: fill it, or leave the header out",
    ),
}


@pytest.mark.parametrize(("batch", "sentence"), MISTAKES.values(), ids=MISTAKES.keys())
def test_rows_that_cannot_be_records_are_refused(batch: pa.RecordBatch, sentence: str) -> None:
    with pytest.raises((SparkError, NoSuchTopic)) as refusal:
        list(encoder({"a": 3, "b": 3}).encoded(batch))
    assert str(refusal.value) == sentence


def test_a_wrong_partition_of_a_row_that_goes_elsewhere_is_no_mistake() -> None:
    batch = batch_of(topic=["small", "large"], partition=[0, 8], value=[b"s", b"l"])

    assert set(all_of(encoder({"small": 1, "large": 9}).encoded(batch))) == {
        TopicPartition("small", 0),
        TopicPartition("large", 8),
    }


def test_a_topic_that_is_not_there_is_said_to_be_missing() -> None:
    with pytest.raises(NoSuchTopic):
        list(encoder({}, topic="t").encoded(batch_of(value=[b"x"])))
