"""Which cluster a command talks to, and whether somebody has named it."""

import click
import pytest

from headrace.cli.main import commands
from headrace.cli.session import BOOTSTRAP, Session


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
