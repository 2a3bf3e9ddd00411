"""What a person reads who asked for something that cannot be: which option or partition, and what to do."""

import json
import socket
from collections.abc import Iterator
from typing import Any, Final

import pytest
from pyspark.errors import PySparkException

from spark.queries import OURS, Queries

pytestmark = pytest.mark.extended

MISTAKES: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "an unknown option": (
        {"subscribe": "shapes", "startingOffset": "earliest"},
        "option 'startingoffset': unknown; did you mean startingOffsets?",
    ),
    "no topic": ({}, "option 'subscribe': expected exactly one of subscribe, subscribePattern and assign"),
    "two selections": (
        {"subscribe": "shapes", "subscribePattern": "s.*"},
        "option 'subscribePattern': expected exactly one of subscribe, subscribePattern and assign",
    ),
    "a missing topic": (
        {"subscribe": "shapes,nowhere"},
        "there is no topic 'nowhere': create it (headrace topic create nowhere), or correct the name",
    ),
    "a missing partition": (
        {"assign": json.dumps({"shapes": [0, 9]})},
        "option 'assign': shapes-9 does not exist: the topic has 5 partitions",
    ),
    "offsets that are no JSON": (
        {"subscribe": "shapes", "startingOffsets": '{"shapes": {0: 1}}'},
        "option 'startingOffsets': not JSON",
    ),
    "a word that is no offset": (
        {"subscribe": "shapes", "startingOffsets": "newest"},
        "option 'startingOffsets': 'newest' is not earliest, latest or JSON",
    ),
    "a partition left out": (
        {"subscribe": "shapes", "startingOffsets": json.dumps({"shapes": {"0": 1}})},
        "option 'startingOffsets': shapes-1 is missing: name all partitions",
    ),
    "a partition too many": (
        {"subscribe": "append-time", "startingOffsets": json.dumps({"append-time": {"0": 1, "1": 1}})},
        "option 'startingOffsets': append-time-1 is named, and is not to be read",
    ),
    "an end past the end": (
        {"subscribe": "append-time", "endingOffsets": json.dumps({"append-time": {"0": 21}})},
        "option 'endingOffsets': append-time-0 ends at offset 20, before 21",
    ),
    "a start after the end": (
        {"subscribe": "append-time", "startingOffsets": json.dumps({"append-time": {"0": 21}})},
        "option 'startingOffsets': offset 21 of append-time-0 lies after the end, 20",
    ),
    "a batch from the end": (
        {"subscribe": "shapes", "startingOffsets": "latest"},
        "option 'startingOffsets': a batch cannot start at the latest offset",
    ),
    "a timestamp that nothing reaches": (
        {"subscribe": "shapes", "startingTimestamp": 2**42},
        "option 'startingTimestamp': shapes-0 has no record from 4398046511104 on; choose an earlier",
    ),
    "a number that is none": (
        {"subscribe": "shapes", "minPartitions": "many"},
        "option 'minPartitions': 'many' is not an integer of at least 1",
    ),
    "a client setting of Java's": (
        {"subscribe": "shapes", "kafka.key.deserializer": "x.y.Z"},
        "option 'kafka.key.deserializer': cannot be set: keys are bytes",
    ),
    "no address": (
        {"subscribe": "shapes", "kafka.bootstrap.servers": "localhost"},
        "option 'kafka.bootstrap.servers': 'localhost' is not an address; expected HOST:PORT",
    ),
}


def said(failure: pytest.ExceptionInfo[PySparkException]) -> str:
    """What is printed; it has no frames of Java's."""
    text = str(failure.value)
    assert "\tat " not in text
    return text


@pytest.mark.parametrize(("options", "sentence"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_named_with_what_to_do(queries: Queries, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(PySparkException) as failure:
        queries.rows(OURS, **options)
    assert sentence in said(failure)


def test_a_stream_says_so_at_its_first_batch(queries: Queries) -> None:
    with pytest.raises(PySparkException) as failure:
        queries.stream(OURS, subscribe="nowhere").finish()
    assert "there is no topic 'nowhere'" in said(failure)


def test_a_stream_has_no_end(queries: Queries) -> None:
    with pytest.raises(PySparkException) as failure:
        queries.stream(OURS, subscribe="shapes", endingOffsets="latest").finish()
    assert "option 'endingOffsets': a stream has no end" in said(failure)


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nobody listens, and nobody can in the meantime."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def test_brokers_that_are_not_there_are_named(queries: Queries, nobody: str) -> None:
    with pytest.raises(PySparkException) as failure:
        queries.rows(OURS, subscribe="shapes", **{"kafka.bootstrap.servers": nobody})
    assert nobody in said(failure)
    assert "no broker answers" in said(failure)


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ("value string", "column 'value' is binary in a topic, not string: read it so, then decode it"),
        ("value binary, price double", "column 'price' is not among those of a topic: key, value, topic,"),
        ("offset int", "column 'offset' is bigint in a topic, not int"),
    ],
)
def test_a_schema_that_a_topic_does_not_have_is_refused(queries: Queries, schema: str, sentence: str) -> None:
    with pytest.raises(PySparkException) as failure:
        queries.table(OURS, schema=schema, subscribe="shapes").collect()
    assert sentence in said(failure)
