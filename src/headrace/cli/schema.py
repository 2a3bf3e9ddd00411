"""`headrace schema`: list, get, register, check, delete, config, mode, diff."""

from typing import Final

import click

from headrace.cli.lazy import Lazy, LazyGroup

COMMANDS: Final = {
    "list": Lazy("headrace.cli.schema_show", "list_", "List subjects, or the versions of one."),
    "get": Lazy("headrace.cli.schema_show", "get", "Print a schema."),
    "diff": Lazy("headrace.cli.schema_show", "diff", "Compare two versions, or a file with the latest."),
    "register": Lazy("headrace.cli.schema_change", "register", "Make a file the next version of a subject."),
    "check": Lazy("headrace.cli.schema_change", "check", "Look whether a file could be the next version."),
    "delete": Lazy("headrace.cli.schema_change", "delete", "Delete a subject, or a version of it."),
    "config": Lazy("headrace.cli.schema_rules", "config", "Show or change the compatibility asked for."),
    "mode": Lazy("headrace.cli.schema_rules", "mode", "Show or change whether schemas can be registered."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def schema() -> None:
    """Register, check, compare and delete schemas:  headrace schema register orders-value order.avsc

    In the registry of a gateway, which `headrace up` runs, or in any other that speaks Confluent's API.
    """
