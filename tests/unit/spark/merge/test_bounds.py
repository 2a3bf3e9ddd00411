"""Which files may contain keys of a batch."""

import datetime as dt

from headrace.spark.merge.bounds import Bounds, bounds_of, comparable, known, may_contain


def test_a_file_may_contain_keys_if_all_its_known_columns_overlap() -> None:
    file = {"id": Bounds(10, 20), "site": Bounds("a", "f")}

    assert may_contain(file, {"id": Bounds(20, 30)})
    assert not may_contain(file, {"id": Bounds(21, 30)})
    assert not may_contain(file, {"id": Bounds(1, 9)})
    assert may_contain(file, {"id": Bounds(1, 100), "site": Bounds("f", "z")})
    assert not may_contain(file, {"id": Bounds(1, 100), "site": Bounds("g", "z")})


def test_a_file_without_bounds_may_contain_everything() -> None:
    assert may_contain({}, {"id": Bounds(1, 1)})
    assert may_contain({"id": Bounds("1", "2")}, {"id": Bounds(3, 3)})  # of other types


def test_values_are_compared_as_integers_or_strings() -> None:
    assert comparable(7) == 7
    assert comparable("ä") == "ä"
    assert comparable(dt.date(1970, 1, 11)) == 10
    assert comparable(dt.datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=dt.UTC)) == 1_000_005
    assert [comparable(each) for each in (None, True, 1.5, b"x", dt.datetime(1970, 1, 1))] == [None] * 5  # noqa: DTZ001


def test_the_bound_of_a_time_is_widened_where_the_format_cuts_it() -> None:
    at = dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)
    assert bounds_of(at, at, slack_us=1000) == Bounds(1_000_000, 1_001_000)
    assert bounds_of(5, 6, slack_us=1000) == Bounds(5, 6)
    assert bounds_of(5, None) is None
    assert known([("a", Bounds(1, 2)), ("b", None)]) == {"a": Bounds(1, 2)}
