"""What the commands about schemas share: where the registry is, and schemas in files."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from headrace.cli import completing
from headrace.cli.session import REGISTRY, Session, as_json_option
from headrace.client.errors import ClientError
from headrace.client.schemas.files import TYPES, read_schema
from headrace.client.schemas.registry import LATEST, Registry, Schema

LARGEST_BYTES: Final = 16 * 1024 * 1024  # of a file; no registry takes as much

Command = TypeVar("Command", bound=Callable[..., Any])

ADVICE: Final = "start `headrace up`, or say with --registry where one is"


def _named(_context: click.Context, _parameter: click.Parameter, subject: str | None) -> str | None:
    if subject == "":
        raise click.UsageError("A subject has a name, and this one is empty.")
    return subject


subject_argument = click.argument("subject", callback=_named, shell_complete=completing.subjects)
any_subject_argument = click.argument(
    "subject", required=False, callback=_named, shell_complete=completing.subjects
)
file_argument = click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))


def options(command: Command) -> Command:
    """Give a command --registry and --json."""
    registry = click.option(
        "--registry",
        metavar="URL",
        expose_value=False,
        callback=_remember,
        help=f"Where the registry is; else HEADRACE_REGISTRY, else {REGISTRY}.",
    )
    return registry(as_json_option(command))


def schema_options(command: Command) -> Command:
    """What has to be known about a schema in a file."""
    kind = click.option(
        "--type",
        "schema_type",
        type=click.Choice(TYPES, case_sensitive=False),
        help="Else as the file's name ends: .avsc, .json, .proto.",
    )
    references = click.option(
        "--reference",
        "references",
        metavar="NAME=SUBJECT:VERSION",
        multiple=True,
        help="A schema that this one uses; repeat for more.",
    )
    return kind(references(command))


def registry_of(session: Session) -> Registry:
    return Registry(session.registry, advice=ADVICE)


def in_file(file: str, schema_type: str | None, references: Sequence[str]) -> Schema:
    """The schema in a file, or on the standard input if that is `-`."""
    if file == "-":
        return read_schema("the input", sys.stdin.read(LARGEST_BYTES), schema_type, references)
    try:
        text = Path(file).read_text("utf-8")
    except UnicodeDecodeError:
        raise ClientError(f"{file} is not text in UTF-8") from None
    return read_schema(file, text, schema_type, references)


def version_of(text: str) -> int | str:
    """`latest`, or a number."""
    if text == LATEST:
        return text
    if not text.isdecimal() or not int(text):
        raise click.UsageError(f"version {text}: expected a number such as 1, or latest.")
    return int(text)


def _remember(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    session = context.ensure_object(Session)
    session.registry = value or os.environ.get("HEADRACE_REGISTRY") or session.registry
