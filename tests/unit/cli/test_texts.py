"""Times and durations as people write them."""

import click
import pytest

from headrace.cli.texts import duration_ms, time_ms


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("PT1H", 3_600_000),
        ("pt1h30m", 5_400_000),
        ("P7D", 604_800_000),
        ("P1W", 604_800_000),
        ("P1DT0.5S", 86_400_500),
        ("PT0S", 0),
    ],
)
def test_durations_are_written_as_in_iso_8601(text: str, milliseconds: int) -> None:
    assert duration_ms(text, "--by-duration") == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "1H", "PT1", "P1H", "PT-1H", "P1DT", "PT1H ago"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match="expected a duration such as PT1H30M or P7D"):
        duration_ms(text, "--by-duration")


def test_a_duration_beyond_all_bounds_is_refused() -> None:
    with pytest.raises(click.UsageError, match="too long ago"):
        duration_ms("P9999999999D", "--by-duration")


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("@1234", 1234),
        ("1970-01-01T00:00:01.500Z", 1500),
        ("1970-01-01T02:00:00+02:00", 0),
    ],
)
def test_times_are_iso_8601_or_milliseconds(text: str, milliseconds: int) -> None:
    assert time_ms(text, "--to-datetime") == milliseconds


@pytest.mark.parametrize("text", ["yesterday", "@", "@x", "2026-13-01"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match=f"--to-datetime {text}: expected a time such as"):
        time_ms(text, "--to-datetime")
