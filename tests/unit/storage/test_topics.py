"""Names that Kafka accepts, and the directories they are found in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.storage.errors import InvalidTopic
from headrace.storage.topics import check_topic_name, parse_directory

names = st.text("abcXYZ019._-", min_size=1, max_size=249).filter(lambda name: name not in {".", ".."})


@given(name=names, partition=st.integers(0, 2**31 - 1))
def test_a_legal_name_comes_back_from_its_directory(name: str, partition: int) -> None:
    check_topic_name(name)
    assert parse_directory(str(TopicPartition(name, partition))) == TopicPartition(name, partition)


@pytest.mark.parametrize("name", ["a", "x" * 249, "...", "-", "_", "a-0", "A.b_C-9"])
def test_legal_names(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "must not be empty"),
        (".", "cannot be named '.'"),
        ("..", "cannot be named '..'"),
        ("x" * 250, "at most 249 characters, got 250"),
        ("a b", "characters other than"),
        ("a/b", "characters other than"),
        ("a\\b", "characters other than"),
        ("a\x00", "characters other than"),
        ("a\n", "characters other than"),
        ("é", "characters other than"),
        ("٣", "characters other than"),
        ("a,b", "characters other than"),
    ],
)
def test_illegal_names_are_refused_with_kafkas_code_and_the_reason(name: str, reason: str) -> None:
    with pytest.raises(InvalidTopic, match=reason) as refused:
        check_topic_name(name)
    assert refused.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(
    "name",
    ["", "orders", "orders-", "-0", "orders-x", "orders-01", "orders--1x", "a b-0", "orders-0 ", "orders-0\n",
     "orders-٣", "orders-2147483648", "orders-99999999999"],
)  # fmt: skip
def test_no_partition_has_such_a_directory(name: str) -> None:
    assert parse_directory(name) is None
