"""Offsets per partition: their JSON, how much a batch takes of each, how ranges are cut for tasks."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.protocol.ids import TopicPartition
from headrace.spark.offsets import admit, from_json, parse, parse_assignment, to_json

PLACES = st.builds(TopicPartition, st.sampled_from(["orders", "clicks", "a.b_c-d"]), st.integers(0, 40))
OFFSETS = st.integers(0, 2**63 - 1)
SIZES = st.lists(st.integers(0, 3000), max_size=8)


@settings(deadline=None)
@given(st.dictionaries(PLACES, OFFSETS))
def test_offsets_survive_the_checkpoint(offsets: dict[TopicPartition, int]) -> None:
    assert from_json(json.loads(json.dumps(to_json(offsets)))) == offsets
    assert parse(json.dumps(to_json(offsets))) == offsets


def test_the_checkpoint_has_topics_and_partitions_in_order() -> None:
    offsets = {TopicPartition("b", 10): 3, TopicPartition("b", 2): 1, TopicPartition("a", 0): 7}

    assert json.dumps(to_json(offsets)) == '{"a": {"0": 7}, "b": {"2": 1, "10": 3}}'


def test_a_person_may_say_earliest_and_latest_of_a_partition() -> None:
    assert parse('{"t": {"0": -2, "1": -1}}') == {TopicPartition("t", 0): -2, TopicPartition("t", 1): -1}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "not JSON: "),
        ("", "not JSON: "),
        ('{"t": {0: 1}}', "not JSON: "),
        ("[1]", "expected an object"),
        ("17", "expected an object"),
        ('{"t": [0]}', "expected partitions of t"),
        ('{"t": 5}', "expected partitions of t"),
        ('{"t": {"one": 5}}', "'one' of t is not a partition number"),
        ('{"t": {"-1": 5}}', "'-1' of t is not a partition number"),
        ('{"t": {"0": -3}}', "-3 of t-0 is not an offset"),
        ('{"t": {"0": 1.5}}', "1.5 of t-0 is not an offset"),
        ('{"t": {"0": "5"}}', "'5' of t-0 is not an offset"),
        ('{"t": {"0": true}}', "True of t-0 is not an offset"),
        ('{"t": {"0": null}}', "None of t-0 is not an offset"),
        ('{"t": {"0": 9223372036854775808}}', "9223372036854775808 of t-0 is not an offset"),
    ],
)
def test_what_is_wrong_with_offsets_is_said(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        parse(text)


def test_an_assignment_names_partitions() -> None:
    assert parse_assignment('{"b": [2, 0], "a": [1]}') == [
        TopicPartition("b", 2),
        TopicPartition("b", 0),
        TopicPartition("a", 1),
    ]


@pytest.mark.parametrize("text", ['{"t": {"0": 1}}', '{"t": ["0"]}', '{"t": [-1]}', '{"t": [true]}', "{}"])
def test_an_assignment_that_names_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_assignment(text)


# -- admission ---------------------------------------------------------------------------------


def lag(start: dict[TopicPartition, int], end: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    return {place: end[place] - start[place] for place in end}


@st.composite
def logs(draw: st.DrawFn) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Where a query is, and how far logs go from there."""
    start = draw(st.dictionaries(PLACES, st.integers(0, 10**6), min_size=1))
    return start, {place: first + draw(st.integers(0, 5000)) for place, first in start.items()}


@settings(deadline=None)
@given(logs(), st.integers(1, 10_000))
def test_a_batch_takes_about_as_much_as_it_may_and_something_of_each(
    found: tuple[dict[TopicPartition, int], dict[TopicPartition, int]], limit: int
) -> None:
    start, latest = found
    taken = lag(start, admit(start, latest, limit))
    waiting = lag(start, latest)

    assert taken.keys() == waiting.keys()
    assert all(min(1, waiting[place]) <= taken[place] <= waiting[place] for place in taken)
    assert sum(taken.values()) <= max(limit, 0) + len(taken)
    assert sum(taken.values()) >= min(limit, sum(waiting.values())) - len(taken)


@settings(deadline=None)
@given(logs(), st.integers(1, 10_000))
def test_batches_end_where_the_logs_do(
    found: tuple[dict[TopicPartition, int], dict[TopicPartition, int]], limit: int
) -> None:
    start, latest = found
    rounds = 0
    while start != latest:
        start = admit(start, latest, limit)
        rounds += 1
        assert rounds <= sum(lag(found[0], latest).values()), (start, latest)


def test_a_partition_gives_in_proportion_to_what_it_has() -> None:
    large, small, idle = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("t", 2)

    ends = admit({large: 0, small: 0, idle: 5}, {large: 900, small: 100, idle: 5}, 100)
    assert ends == {large: 90, small: 10, idle: 5}


def test_a_partition_that_ends_before_it_was_read_is_said_to_end_there() -> None:
    again, other = TopicPartition("t", 0), TopicPartition("t", 1)

    for limit in (1, 100):
        assert admit({again: 10, other: 0}, {again: 4, other: 2}, limit)[again] == 4
