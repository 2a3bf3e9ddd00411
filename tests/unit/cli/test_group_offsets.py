"""What `headrace group reset-offsets` understands: topics with partitions, files of offsets."""

import click
import pytest

from headrace.cli.group import parse_topics, read_offsets
from headrace.cli.support.formats import BadInput
from headrace.protocol.ids import TopicPartition


def test_a_topic_is_all_of_it_or_some_partitions() -> None:
    assert parse_topics(["a", "b:3", "b:0,1"]) == {"a": (), "b": [3, 0, 1]}
    assert parse_topics(["a:1", "a"]) == {"a": ()}


@pytest.mark.parametrize("text", ["", ":1", "a:", "a:x", "a:1,", "a:-1", "a:1:2"])
def test_what_is_no_topic_with_partitions_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match="expected a topic, or a topic and partitions as orders:0,1"):
        parse_topics([text])


def test_a_file_has_an_offset_for_each_partition() -> None:
    assert read_offsets(["orders,0,5", "", '"pay ments",12,0']) == {
        TopicPartition("orders", 0): 5,
        TopicPartition("pay ments", 12): 0,
    }


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (["orders,0"], "line 1: expected topic,partition,offset"),
        (["orders,0,1", "orders,one,1"], "line 2: expected topic,partition,offset"),
        (["orders,0,1", "orders,0,2"], "line 2: orders-0 appears twice"),
        ([], "the file is empty"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(lines: list[str], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        read_offsets(lines)
