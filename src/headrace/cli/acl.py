"""`headrace acl`: which users may do what."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import click

from headrace.cli.support.lazy import LazyGroup
from headrace.cli.support.output import Drawable, count, table
from headrace.cli.support.session import Command, Session, confirm, options, yes_option
from headrace.security import acls
from headrace.security.authorization import CLUSTER_NAME, Operation, ResourceType

_OPERATIONS: Final = {each.name.lower().replace("_", "-"): each for each in Operation}
_NAMED: Final = {
    "topics": ResourceType.TOPIC,
    "groups": ResourceType.GROUP,
    "transactional_ids": ResourceType.TRANSACTIONAL_ID,
    "user_principals": ResourceType.USER,
}
_RESOURCES: Final = "--topic, --group, --transactional-id, --user-principal or --cluster"
_COLUMNS: Final = ("resource", "name", "pattern", "principal", "permission", "operation", "host")

Resource = tuple[ResourceType, str]


def _names(option: str, parameter: str, help_: str) -> Callable[[Command], Command]:
    return click.option(option, parameter, metavar="NAME", multiple=True, help=help_)


def _resources(command: Command) -> Command:
    """Give a command the options that name resources."""
    for option in (
        click.option("--prefixed", is_flag=True, help="The names are prefixes: all resources that begin so."),
        click.option("--cluster", is_flag=True, help="The cluster itself: settings, users, ACLs, brokers."),
        _names("--user-principal", "user_principals", "Tokens of another principal, or of *; repeatable."),
        _names("--transactional-id", "transactional_ids", "A transactional id, or *; repeatable."),
        _names("--group", "groups", "A consumer group, or *; repeatable."),
        _names("--topic", "topics", "A topic, or *; repeatable."),
    ):
        command = option(command)
    return command


_operation = click.option(
    "--operation",
    "operations",
    type=click.Choice(list(_OPERATIONS)),
    multiple=True,
    help="What the user does; repeatable. Default: all.",
)
_host = click.option("--host", metavar="ADDRESS", default=acls.WILDCARD, help="Only from this IP address.")


@click.group(cls=LazyGroup)
def acl() -> None:
    """List, allow, deny and remove what users may do.

    With an authorizer, a user may do only what an ACL allows; deny takes precedence over allow. A principal
    is User:NAME, or User:CN=NAME for a client certificate; User:* is everybody.
    """


def _changes(command: Command) -> Command:
    """Give `allow` and `deny` their argument and options."""
    for option in (
        _host,
        _operation,
        click.option("--consumer", is_flag=True, help="All that a consumer needs: --topic, and --group."),
        click.option("--producer", is_flag=True, help="All that a producer needs: --topic."),
        _resources,
        click.argument("principal"),
    ):
        command = option(command)
    return command


@acl.command()
@_changes
@options
def allow(session: Session, principal: str, **chosen: Any) -> None:
    """Allow something:  headrace acl allow User:alice --topic orders --operation read

    \b
      headrace acl allow User:alice --producer --topic orders
      headrace acl allow User:alice --consumer --topic orders --group billing
      headrace acl allow User:alice --topic team-a. --prefixed
      headrace acl allow User:gateway --user-principal User:CN=alice --operation create-tokens
    """  # noqa: D301  \b keeps click from wrapping these lines
    _create(session, principal, acls.PermissionType.ALLOW, **chosen)


@acl.command()
@_changes
@options
def deny(session: Session, principal: str, **chosen: Any) -> None:
    """Deny something, whatever else is allowed:  headrace acl deny User:bob --topic salaries"""
    _create(session, principal, acls.PermissionType.DENY, **chosen)


@acl.command("list")
@click.option("--principal", help="Only ACLs of this principal.")
@_resources
@options
def list_(session: Session, principal: str | None, *, prefixed: bool, **chosen: Any) -> None:
    """List ACLs:  headrace acl list --topic orders

    With a topic, group or transactional id, all ACLs that apply to it: also those of prefixes and of *.
    """
    pattern_type = acls.PatternType.PREFIXED if prefixed else acls.PatternType.MATCH
    found = sorted(
        {
            each
            for selected in _filters(principal, pattern_type, None, **chosen)
            for each in session.admin.list_acls(selected)
        }
    )
    session.show(
        [_as_json(each) for each in found], (lambda: _table(found)) if found else "there is no such ACL"
    )


@acl.command()
@click.option("--principal", help="Only ACLs of this principal.")
@_resources
@_operation
@yes_option
@options
def remove(
    session: Session,
    principal: str | None,
    operations: Sequence[str],
    *,
    prefixed: bool,
    yes: bool,
    **chosen: Any,
) -> None:
    """Remove ACLs:  headrace acl remove --principal User:alice --topic orders

    Of those that match all options. Names match exactly: an ACL of a prefix needs --prefixed.
    """
    pattern_type = acls.PatternType.PREFIXED if prefixed else acls.PatternType.LITERAL
    filters = _filters(principal, pattern_type, operations, **chosen)
    if filters == [acls.AclFilter()]:
        raise click.UsageError(f"Give --principal, {_RESOURCES}.")
    found = sorted({each for selected in filters for each in session.admin.list_acls(selected)})
    if not found:
        session.show([], "there is no such ACL: nothing was removed")
        return
    for each in found if not yes else ():
        click.echo(f"  {each}", err=True)
    question = f"Remove {'this ACL' if len(found) == 1 else f'these {len(found)} ACLs'}?"
    confirm(question, action="to remove ACLs", declined="nothing was removed", yes=yes)
    removed = session.admin.delete_acls(filters)
    session.show([_as_json(each) for each in removed], f"removed {count(len(removed), 'ACL')}")


def _create(
    session: Session,
    principal: str,
    permission: acls.PermissionType,
    *,
    operations: Sequence[str],
    host: str,
    producer: bool,
    consumer: bool,
    prefixed: bool,
    cluster: bool,
    **named: Sequence[str],
) -> None:
    resources = list(_named_resources(cluster=cluster, **named))
    if not resources:
        raise click.UsageError(f"Name what it is about: {_RESOURCES}.")
    if operations and (producer or consumer):
        raise click.UsageError("Give --operation, or --producer and --consumer.")
    roles = [acls.PRODUCER_OPERATIONS] * producer + [acls.CONSUMER_OPERATIONS] * consumer
    given = [_OPERATIONS[name] for name in operations] or [Operation.ALL]
    pattern_type = acls.PatternType.PREFIXED if prefixed else acls.PatternType.LITERAL
    made = [
        acls.AclBinding(
            acls.ResourcePattern(kind, name, _pattern_type(kind, name, pattern_type)),
            acls.AclEntry(acls.principal_of(principal), host, operation, permission),
        )
        for kind, name in resources
        for operation in (
            dict.fromkeys(it for role in roles for it in role.get(kind, ())) if roles else given
        )
    ]
    if not made:
        raise click.UsageError("A producer writes to a --topic; a consumer reads a --topic in a --group.")
    session.admin.create_acls(made)
    session.show([_as_json(each) for each in made], lambda: _table(made))


def _pattern_type(kind: ResourceType, name: str, chosen: acls.PatternType) -> acls.PatternType:
    """Return LITERAL for what cannot be a prefix: the cluster, and *."""
    return acls.PatternType.LITERAL if kind is ResourceType.CLUSTER or name == acls.WILDCARD else chosen


def _named_resources(*, cluster: bool, **named: Sequence[str]) -> Iterator[Resource]:
    for option, names in named.items():
        kind = _NAMED[option]
        for name in names:
            yield (
                kind,
                acls.principal_of(name) if kind is ResourceType.USER and name != acls.WILDCARD else name,
            )
    if cluster:
        yield ResourceType.CLUSTER, CLUSTER_NAME


def _filters(
    principal: str | None, pattern_type: acls.PatternType, operations: Sequence[str] | None, **chosen: Any
) -> list[acls.AclFilter]:
    """Return a filter for each resource and operation that the options name."""
    by = acls.principal_of(principal) if principal else None
    resources = list(_named_resources(**chosen))
    chosen_operations: list[Operation | None] = [_OPERATIONS[each] for each in operations or ()] or [None]
    if not resources:
        return [
            acls.AclFilter(principal=by, operation=chosen_operation) for chosen_operation in chosen_operations
        ]
    return [
        acls.AclFilter(kind, name, _pattern_type(kind, name, pattern_type), by, operation=chosen_operation)
        for kind, name in resources
        for chosen_operation in chosen_operations
    ]


def _table(found: Sequence[acls.AclBinding]) -> Drawable:
    return table(_COLUMNS, [tuple(_as_json(each).values()) for each in found])


def _as_json(acl: acls.AclBinding) -> dict[str, str]:
    return {
        "resource_type": acl.pattern.resource_type.name,
        "resource_name": acl.pattern.name,
        "pattern_type": acl.pattern.pattern_type.name,
        "principal": acl.entry.principal,
        "permission": acl.entry.permission_type.name,
        "operation": acl.entry.operation.name,
        "host": acl.entry.host,
    }
