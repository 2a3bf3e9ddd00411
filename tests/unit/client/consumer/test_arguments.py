"""Partitions and offsets, as people write them."""

from typing import Any

import pytest

from headrace.client.consumer.arguments import begins_of, check_most, offset_of, partition_list
from headrace.client.errors import BadSetting, NoSuchTopic
from headrace.protocol.ids import TopicPartition


class Number:
    """A whole number that is no int, such as numpy's."""

    def __index__(self) -> int:
        return 7


@pytest.mark.parametrize("given", [[("t", 0), ("t", 1)], (["t", 0], ["t", 1]), {("t", 0): 5, ("t", 1): 6}])
def test_partitions_are_pairs(given: Any) -> None:
    assert partition_list(given) == [TopicPartition("t", 0), TopicPartition("t", 1)]


@pytest.mark.parametrize(
    "given",
    [
        "t",
        ["t"],
        5,
        [None],
        [("t",)],
        [("t", 0, 0)],
        ("t", 0),
        TopicPartition("t", 0),
        [("t", "0")],
        [("t", 0.0)],
        [("t", -1)],
    ],
)
def test_what_is_no_list_of_pairs_is_told_what_one_is(given: Any) -> None:
    with pytest.raises(BadSetting, match="a list of pairs, such as"):
        partition_list(given)


def test_a_topic_that_is_no_text_is_none() -> None:
    with pytest.raises(NoSuchTopic, match="named by a str, not by list"):
        partition_list([(["t"], 0)])


def test_a_mapping_says_where_to_begin() -> None:
    assert begins_of({("t", 0): 5, ("t", 1): "latest"}, -2) == {("t", 0): 5, ("t", 1): -1}
    assert begins_of([("t", 0)], -2) == {("t", 0): -2}


@pytest.mark.parametrize(
    ("given", "offset"), [(0, 0), ("earliest", -2), ("latest", -1), (-1, -1), (Number(), 7)]
)
def test_an_offset_is_a_number_or_an_end(given: Any, offset: int) -> None:
    assert offset_of(given) == offset


@pytest.mark.parametrize("given", [-3, 1.0, "5", None, [1], {}, 2**63])
def test_other_offsets_are_refused(given: Any) -> None:
    with pytest.raises(BadSetting, match="an offset is a number from 0 on, 'earliest' or 'latest'"):
        offset_of(given)


@pytest.mark.parametrize("given", [0, -1, 1.5, "5", 2**20])
def test_a_batch_has_a_size(given: Any) -> None:
    with pytest.raises(BadSetting, match="at least one record"):
        check_most(given)
    check_most(500)
