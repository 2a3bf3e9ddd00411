"""What may be said of a record beside its key and its value."""

import datetime as dt
import re
from typing import Any

import pytest

from headrace.client.errors import BadSetting, NotSerializable
from headrace.client.producer.arguments import check_partition, header_list, time_of


class Number:
    """A whole number that is no int, such as numpy's."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __index__(self) -> int:
        return self._number


@pytest.mark.parametrize(
    "headers",
    [
        {"a": b"x", "b": None},
        [("a", b"x"), ("b", None)],
        (("a", b"x"), ("b", None)),
        [["a", b"x"], ["b", None]],
    ],
)
def test_headers_are_a_dict_or_pairs_of_any_kind(headers: Any) -> None:
    assert header_list(headers, "orders") == [("a", b"x"), ("b", None)]


def test_a_name_may_come_twice() -> None:
    assert header_list([("a", "x"), ("a", "y")], "orders") == [("a", "x"), ("a", "y")]


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        (5, "pairs (name, value), not 5"),
        ("ab", "pairs (name, value), not 'a'"),
        (["ab"], "pairs (name, value), not 'ab'"),
        ([("a",)], "pairs (name, value), not ('a',)"),
        (iter([("a", b"x")]), "pairs (name, value), not <list_iterator"),
        ({"a": 5}, "a is bytes, str or None, not int"),
        ({b"a": b"x"}, "a name is a str without a zero in it, not b'a'"),
        ({"a\0b": b"x"}, "a name is a str without a zero in it, not 'a\\x00b'"),
    ],
)
def test_headers_that_would_be_sent_as_something_else_are_refused(headers: Any, said: str) -> None:
    with pytest.raises(NotSerializable, match=re.escape(said)):
        header_list(headers, "orders")


@pytest.mark.parametrize(("given", "time_ms"), [(0, 0), (None, 0), (1500, 1500), (Number(1500), 1500)])
def test_a_time_is_a_whole_number_of_milliseconds(given: Any, time_ms: int) -> None:
    assert time_of(given) == time_ms


@pytest.mark.parametrize("given", [-1, 1.5, "1", 2**63, dt.datetime(2026, 1, 1, tzinfo=dt.UTC)])
def test_other_times_are_refused(given: Any) -> None:
    with pytest.raises(BadSetting, match="of milliseconds since 1970, or 0 for now"):
        time_of(given)


@pytest.mark.parametrize("given", ["0", 1.0, 2**40, [0]])
def test_what_is_no_number_of_a_partition_is_refused(given: Any) -> None:
    with pytest.raises(BadSetting, match="it is an int from 0 on, or None for any"):
        check_partition(given)
    for known in (None, 0, Number(3)):
        check_partition(known)
