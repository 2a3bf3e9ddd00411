"""`headrace schema`: the commands, and what they share: the registry, and schemas in files."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from headrace.cli import completion
from headrace.cli.lazy import Lazy, LazyGroup
from headrace.cli.session import REGISTRY, Session, json_option
from headrace.client.errors import ClientError
from headrace.client.schemas.files import TYPES, read_schema
from headrace.client.schemas.registry import LATEST, Registry, Schema

LARGEST_BYTES: Final = 16 * 1024 * 1024  # of a file; no registry accepts as much
ADVICE: Final = "start `headrace up`, or give the address of a registry with --registry"
COMMANDS: Final = {
    "list": Lazy("headrace.cli.schema_show", "list_", "List subjects, or the versions of one."),
    "get": Lazy("headrace.cli.schema_show", "get", "Print a schema."),
    "diff": Lazy("headrace.cli.schema_show", "diff", "Compare two versions, or a file with the latest."),
    "register": Lazy("headrace.cli.schema_change", "register", "Register a file as the next version."),
    "check": Lazy("headrace.cli.schema_change", "check", "Check whether a file could be the next version."),
    "delete": Lazy("headrace.cli.schema_change", "delete", "Delete a subject, or a version of it."),
    "config": Lazy("headrace.cli.schema_change", "config", "Show or change the compatibility level."),
    "mode": Lazy("headrace.cli.schema_change", "mode", "Show or change whether schemas can be registered."),
}

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group(cls=LazyGroup, table=COMMANDS)
def schema() -> None:
    """Register, check, compare and delete schemas:  headrace schema register orders-value order.avsc

    The registry is that of a gateway, which `headrace up` runs, or any other with Confluent's API.
    """


def _not_empty(_context: click.Context, _parameter: click.Parameter, subject: str | None) -> str | None:
    if subject == "":
        raise click.UsageError("The name of the subject is empty.")
    return subject


subject_argument = click.argument("subject", callback=_not_empty, shell_complete=completion.subjects)
any_subject_argument = click.argument(
    "subject", required=False, callback=_not_empty, shell_complete=completion.subjects
)
schema_file = click.Path(exists=True, dir_okay=False, allow_dash=True)
file_argument = click.argument("file", type=schema_file)


def options(command: Command) -> Command:
    """Give a command --registry, --json and, as its first argument, the session."""
    registry = click.option(
        "--registry",
        metavar="URL",
        expose_value=False,
        callback=_store_registry,
        help=f"The address of the registry. Default: HEADRACE_REGISTRY, or {REGISTRY}.",
    )
    return registry(json_option(command))


def _store_registry(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    session = context.ensure_object(Session)
    session.registry = value or os.environ.get("HEADRACE_REGISTRY") or session.registry


def schema_options(command: Command) -> Command:
    """Give a command --type and --reference, which describe the schema in a file."""
    kind = click.option(
        "--type",
        "schema_type",
        type=click.Choice(TYPES, case_sensitive=False),
        help="Default: by the suffix of the file: .avsc, .json, .proto.",
    )
    references = click.option(
        "--reference",
        "references",
        metavar="NAME=SUBJECT:VERSION",
        multiple=True,
        help="A schema that this one uses; repeatable.",
    )
    return kind(references(command))


def registry_of(session: Session) -> Registry:
    return Registry(session.registry, advice=ADVICE)


def in_file(file: str, schema_type: str | None, references: Sequence[str]) -> Schema:
    """Return the schema in a file, or on the standard input if the file is `-`."""
    if file == "-":
        return read_schema("the input", sys.stdin.read(LARGEST_BYTES), schema_type, references)
    try:
        text = Path(file).read_text("utf-8")
    except UnicodeDecodeError:
        raise ClientError(f"{file} is not text in UTF-8") from None
    return read_schema(file, text, schema_type, references)


def version_of(text: str) -> int | str:
    """Return `latest`, or a version number."""
    if text == LATEST:
        return text
    if not text.isdecimal() or not int(text):
        raise click.UsageError(f"version {text}: expected a number such as 1, or latest.")
    return int(text)
