"""Durations as Spark reads them: JavaUtils.timeStringAsMs."""

import pytest

from headrace.spark.option_values import parse_duration_s


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
        ("0s", 0.0),
    ],
)
def test_spark_s_notations(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", " ", "soon", "-1s", "90 seconds", "1.5s", "s", "1h 30"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration; expected a number and a unit"):
        parse_duration_s(text)


def test_a_duration_fits_into_a_long() -> None:
    with pytest.raises(ValueError, match="is more than 9223372036854775807 milliseconds"):
        parse_duration_s("999999999999999999d")
