"""`headrace quota`: list, set, remove."""

from collections.abc import Sequence
from typing import Any, Final

import click

from headrace.cli.support.lazy import LazyGroup
from headrace.cli.support.output import table
from headrace.cli.support.session import Command, Session, confirm, options, yes_option
from headrace.client.admin.quotas import KEYS, ClientQuota, Entity, QuotaAdmin, shown

_KEYS_HELP: Final = (
    "QUOTA is producer_byte_rate or consumer_byte_rate (bytes per second), request_percentage (of the time "
    "of a broker's event loop), controller_mutation_rate (partitions created or deleted per second), or, of "
    "an IP address, connection_creation_rate (per second)."
)


def entity_options(command: Command) -> Command:
    """Give a command the names of an entity: --user, --client-id, --ip, and the default of each."""
    for name, what in (("ip", "IP address"), ("client-id", "client id"), ("user", "user")):
        of_all = f"Every {what} without a quota of its own."
        command = click.option(f"--{name}-default", is_flag=True, help=of_all)(command)
        command = click.option(f"--{name}", metavar="NAME", help=f"The {what}.")(command)
    return command


@click.group(cls=LazyGroup)
def quota() -> None:
    """List, set and remove the quotas of users, client ids and IP addresses."""


@quota.command("list")
@entity_options
@options
def list_(session: Session, **names: Any) -> None:
    """List the quotas:  headrace quota list --user alice

    Without names, every entity with a quota is listed. With --user alice, the quotas that alice has for
    single client ids are listed, too.
    """
    found = QuotaAdmin(session.brokers).list_quotas(_entity(names))
    rows = [(shown(it.entity), key, f"{value:.15g}") for it in found for key, value in it.quotas.items()]
    columns = ["entity", "quota", "value"]
    session.show(found, (lambda: table(columns, rows)) if found else "there are no quotas")


@quota.command("set", epilog=_KEYS_HELP)
@click.argument("quotas", metavar="QUOTA=NUMBER...", nargs=-1, required=True)
@entity_options
@options
def set_(session: Session, quotas: Sequence[str], **names: Any) -> None:
    """Set quotas:  headrace quota set --user alice producer_byte_rate=1000000

    One quota applies to a client: that of its user, or of all users, and else that of its client id. A quota
    for one client id of the user comes before the user's own. Every broker enforces quotas on its own.
    """
    entity, sets = _entity(names), dict(map(_assignment, quotas))
    QuotaAdmin(session.brokers).alter_quotas(entity, sets=sets)
    session.show(ClientQuota(entity, sets), f"set {', '.join(quotas)} for {shown(entity)}")


@quota.command(epilog=_KEYS_HELP)
@click.argument("quotas", metavar="[QUOTA]...", nargs=-1)
@entity_options
@yes_option
@options
def remove(session: Session, quotas: Sequence[str], *, yes: bool, **names: Any) -> None:
    """Remove quotas:  headrace quota remove --user alice producer_byte_rate

    Without QUOTA, all quotas of the entity are removed.
    """
    entity, admin = _entity(names), QuotaAdmin(session.brokers)
    keys = list(quotas)
    if not keys:
        keys = [key for each in admin.list_quotas(entity) if each.entity == entity for key in each.quotas]
    what = ", ".join(keys) if keys else "nothing"
    if keys:
        question, of = f"Remove {what} from {shown(entity)}?", "to remove the quotas"
        confirm(question, action=of, declined="nothing was removed", yes=yes)
    admin.alter_quotas(entity, unsets=keys)
    session.show({"entity": entity, "removed": keys}, f"removed {what} from {shown(entity)}")


def _entity(names: dict[str, Any]) -> Entity:
    """Return the entity that the options name."""
    entity: dict[str, str | None] = {}
    for type_ in ("user", "client-id", "ip"):
        option = type_.replace("-", "_")
        name, is_default = names[option], names[f"{option}_default"]
        if name is not None and is_default:
            raise click.UsageError(f"--{type_} and --{type_}-default exclude each other")
        if name is not None or is_default:
            entity[type_] = name
    return entity


def _assignment(text: str) -> tuple[str, float]:
    key, equals, number = text.partition("=")
    if not equals or key not in KEYS:
        raise click.UsageError(
            f"{text[:80]!r}: expected QUOTA=NUMBER, where QUOTA is one of {', '.join(KEYS)}"
        )
    try:
        return key, float(number)
    except ValueError:
        raise click.UsageError(f"{text[:80]!r}: expected a number after the =") from None
