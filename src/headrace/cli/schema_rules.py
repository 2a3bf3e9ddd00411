"""`headrace schema config` and `mode`: what a registry asks of schemas, and whether it takes any."""

import click

from headrace.cli.schema_session import any_subject_argument, options, registry_of
from headrace.cli.session import Session
from headrace.client.schemas.registry import LEVELS, MODES

EVERYBODY = "all subjects"


@click.command()
@any_subject_argument
@click.option("--set", "level", type=click.Choice(LEVELS, case_sensitive=False), help="From now on.")
@click.option("--unset", is_flag=True, help="Back to what is asked of all subjects, or to BACKWARD.")
@options
@click.pass_obj
def config(session: Session, subject: str | None, level: str | None, *, unset: bool) -> None:
    """Show the compatibility asked for:  headrace schema config orders-value

    Or change it:  headrace schema config orders-value --set FULL

    BACKWARD: who has the new schema can read what was written with the last one. FORWARD: the other way
    round. FULL is both, and with _TRANSITIVE all earlier versions count, not the last alone. Without a
    subject it is about all that have none of their own.
    """
    if level is not None and unset:
        raise click.UsageError("--set and --unset contradict each other.")
    registry = registry_of(session)
    if level is not None:
        registry.set_level(level.upper(), subject)
    elif unset:
        registry.unset_level(subject)
    found = registry.level(subject)
    session.show({"subject": subject, "compatibility": found}, f"{subject or EVERYBODY}: {found}")


@click.command()
@any_subject_argument
@click.option("--set", "new", type=click.Choice(MODES, case_sensitive=False), help="From now on.")
@click.option("--unset", is_flag=True, help="A subject's goes back to what all have.")
@click.option("--force", is_flag=True, help="IMPORT, though there are schemas already.")
@options
@click.pass_obj
def mode(session: Session, subject: str | None, new: str | None, *, unset: bool, force: bool) -> None:
    """Show whether schemas can be registered:  headrace schema mode

    Or change it:  headrace schema mode orders-value --set READONLY

    READWRITE takes schemas, READONLY none, and IMPORT takes them with the ids that they have elsewhere.
    """
    if new is not None and unset:
        raise click.UsageError("--set and --unset contradict each other.")
    if unset and subject is None:
        raise click.UsageError("--unset is of a subject: what all have can only be set.")
    registry = registry_of(session)
    if new is not None:
        registry.set_mode(new.upper(), subject, force=force)
    elif unset:
        registry.unset_mode(str(subject))
    found = registry.mode(subject)
    session.show({"subject": subject, "mode": found}, f"{subject or EVERYBODY}: {found}")
