"""What a checkpoint says of a source, in JSON that Spark's own connector and earlier versions can read."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.protocol.ids import TopicPartition
from headrace.spark.errors import InvalidOption
from headrace.spark.offsets import from_json, parse
from headrace.spark.options import SourceOptions
from headrace.spark.position import INITIAL, Position, is_initial
from headrace.tables.reader.topic_ids import show_topic_id

TOPICS = st.sampled_from(["orders", "clicks", "a.b_c-d"])
OFFSETS = st.dictionaries(st.builds(TopicPartition, TOPICS, st.integers(0, 40)), st.integers(0, 2**63 - 1))
IDS = st.dictionaries(TOPICS, st.binary(min_size=16, max_size=16).map(show_topic_id).filter(bool))
ZERO = TopicPartition("orders", 0)


def through_checkpoint(value: Any) -> Any:
    return json.loads(json.dumps(value))


@settings(deadline=None)
@given(OFFSETS, IDS, st.none() | OFFSETS)
def test_a_position_survives_the_checkpoint(offsets: Any, ids: Any, initial: Any) -> None:
    topics = {place.topic for place in offsets}
    kept = {topic: each for topic, each in ids.items() if topic in topics}
    position = Position(offsets=offsets, topic_ids=kept, initial_offsets=initial)
    value = through_checkpoint(position.to_json())

    assert Position.from_json(value) == position
    assert not is_initial(value)
    # Spark's own connector takes it for a map of topics to maps of partitions to offsets, and so did we.
    assert all(isinstance(each, dict) for each in value.values())
    assert from_json(value) == parse(json.dumps(value)) == offsets


def test_offsets_without_anything_else_are_a_position() -> None:
    value = {"orders": {"0": 17}}
    assert Position.from_json(value) == Position(offsets={ZERO: 17})
    assert Position(offsets={ZERO: 17}).to_json() == value


def test_the_beginning_of_a_new_query_is_told_from_offsets() -> None:
    assert is_initial(through_checkpoint(INITIAL))
    assert not is_initial({})
    assert Position.from_json(INITIAL).offsets == {}


def test_a_topic_with_another_id_was_recreated() -> None:
    known = Position(
        offsets={ZERO: 17, TopicPartition("clicks", 1): 3}, topic_ids={"orders": "one", "clicks": "two"}
    )

    assert known.recreated({"orders": "one", "clicks": "two", "new": "three"}) == []
    assert known.recreated({"orders": "other", "clicks": "two"}) == ["orders"]
    assert known.recreated({"orders": "one"}) == []  # it is gone, or the broker has no ids
    assert Position(offsets={ZERO: 17}).recreated({"orders": "other"}) == []
    assert known.without(["orders"]) == Position(
        offsets={TopicPartition("clicks", 1): 3}, topic_ids={"clicks": "two"}
    )


def test_a_topic_id_is_shown_as_kafka_shows_it() -> None:
    assert show_topic_id(bytes(range(16))) == "AAECAwQFBgcICQoLDA0ODw"
    assert show_topic_id(bytes(16)) is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("latest", "not JSON"), ('{"orders": {"0": -1}}', "-1 of orders-0 is not an offset")],
)
def test_initial_offsets_are_offsets(text: str, sentence: str) -> None:
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "orders", "initialOffsets": text}
    with pytest.raises(InvalidOption, match=sentence):
        SourceOptions.of(given, streaming=True)


def test_a_batch_has_no_initial_offsets() -> None:
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "orders", "initialOffsets": "{}"}
    with pytest.raises(InvalidOption, match="a batch begins at startingOffsets"):
        SourceOptions.of(given, streaming=False)
