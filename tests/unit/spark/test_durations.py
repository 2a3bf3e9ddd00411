"""Durations as Spark reads them: JavaUtils.timeStringAsMs, and the intervals of triggers."""

import pytest

from headrace.spark.durations import parse_duration_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("250ms", 0.25),
        ("500us", 0.0005),
        ("30s", 30.0),
        ("15m", 900.0),
        ("15M", 900.0),
        ("2min", 120.0),
        ("2 min", 120.0),
        ("1h", 3600.0),
        (" 1d ", 86400.0),
        ("1500", 1.5),
        ("90 seconds", 90.0),
        ("1 day", 86400.0),
        ("1 hour 30 minutes", 5400.0),
        ("interval 2 weeks", 1209600.0),
        ("1.5 seconds", 1.5),
        ("0s", 0.0),
    ],
)
def test_spark_s_notations(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", " ", "soon", "-1s", "1 parsec", "1 day and", "interval", "s", "1h 30"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration; expected a number and a unit"):
        parse_duration_s(text)


def test_a_month_has_no_fixed_length() -> None:
    with pytest.raises(ValueError, match="a month has no fixed length; use days"):
        parse_duration_s("2 months")


def test_a_duration_fits_into_a_long() -> None:
    with pytest.raises(ValueError, match="is more than 9223372036854775807 milliseconds"):
        parse_duration_s("999999999999999999d")
