"""The cluster that a command talks to, and the times and durations that options take."""

import click
import pytest

from headrace.cli.main import commands
from headrace.cli.support.session import BOOTSTRAP, Session, duration_ms, time_ms


def session_of(*arguments: str) -> Session:
    """The session in which `headrace topic list` would run, which it does not."""
    session = Session()
    context = commands.make_context("headrace", list(arguments), obj=session)
    with context:
        context.invoke(commands.callback or click.get_current_context)
    return session


@pytest.mark.parametrize(
    ("arguments", "variable", "named"),
    [
        ((), None, None),
        ((), "", None),
        ((), "one:9092", "one:9092"),
        (("--bootstrap", "two:9092"), "one:9092", "two:9092"),
        (("--bootstrap", BOOTSTRAP), "one:9092", BOOTSTRAP),
        (("--bootstrap", BOOTSTRAP), None, BOOTSTRAP),
    ],
)
def test_an_address_that_is_named_counts_even_if_it_is_the_usual_one(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], variable: str | None, named: str | None
) -> None:
    monkeypatch.delenv("HEADRACE_BOOTSTRAP", raising=False)
    if variable is not None:
        monkeypatch.setenv("HEADRACE_BOOTSTRAP", variable)

    session = session_of(*arguments, "topic", "list")
    assert session.named == named
    assert session.bootstrap == (named or BOOTSTRAP)


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
    with pytest.raises(click.UsageError, match="the duration is too long"):
        duration_ms("P9999999999D", "--by-duration")


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("@1234", 1234), ("1970-01-01T00:00:01.500Z", 1500), ("1970-01-01T02:00:00+02:00", 0)],
)
def test_times_are_iso_8601_or_milliseconds(text: str, milliseconds: int) -> None:
    assert time_ms(text, "--to-datetime") == milliseconds


@pytest.mark.parametrize("text", ["yesterday", "@", "@x", "2026-13-01"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match=f"--to-datetime {text}: expected a time such as"):
        time_ms(text, "--to-datetime")
