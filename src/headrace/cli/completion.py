"""`headrace completion`, and the values that Tab offers for names in the cluster and for settings.

Completion waits one second at most for the cluster. Without an answer it offers nothing and prints no error,
because the user is in the middle of a line.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import click
from click.shell_completion import CompletionItem, get_completion_class

from headrace.cli.support.session import Session, json_option

if TYPE_CHECKING:
    from headrace.client.wire.brokers import Brokers

SHELLS: Final = ("bash", "zsh", "fish")
TIMEOUT_S: Final = 1.0

T = TypeVar("T")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
@click.pass_context
def completion(context: click.Context, session: Session, shell: str) -> None:
    """Print a script that completes commands:  headrace completion bash

    The command installs nothing. Load the script in your shell's configuration:

    \b
      bash   eval "$(headrace completion bash)"   in ~/.bashrc
      zsh    eval "$(headrace completion zsh)"   in ~/.zshrc, after compinit
      fish   headrace completion fish > ~/.config/fish/completions/headrace.fish

    Topics, groups, transactional ids, brokers and settings complete too, if the cluster answers within a
    second.
    """  # noqa: D301  \b keeps click from wrapping these lines
    known = get_completion_class(shell)
    assert known is not None, shell
    script = known(context.find_root().command, {}, "headrace", "_HEADRACE_COMPLETE").source()
    session.show({"shell": shell, "script": script}, script.rstrip())


def topics(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return topics; internal ones only if the word begins with an underscore."""

    def names(brokers: "Brokers") -> list[str]:
        return [topic.name or "" for topic in brokers.any_metadata(None, TIMEOUT_S).topics]

    internal = begun.startswith("_")
    found = _from_cluster(context, names)
    return _items([name for name in found if internal or not name.startswith("__")], begun)


def brokers(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the ids and addresses of live brokers; in a list such as 1,2,3 the next one."""

    def ids(brokers: "Brokers") -> list[tuple[str, str]]:
        return [(str(each.node_id), f"{each.host}:{each.port}") for each in brokers.any_metadata().brokers]

    before, comma, last = begun.rpartition(",")
    given = set(before.split(","))
    return [
        CompletionItem(f"{before}{comma}{number}", help=address)
        for number, address in sorted(_from_cluster(context, ids), key=lambda each: int(each[0]))
        if number.startswith(last) and number not in given
    ]


def groups(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return groups; each broker lists the groups that it coordinates."""

    def names(brokers: "Brokers") -> list[str]:
        from headrace.client.groups.coordinators import listed  # noqa: PLC0415

        return list(listed(brokers).groups)

    return _items(_from_cluster(context, names), begun)


def transactional_ids(
    context: click.Context, _parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """Return transactional ids; each broker lists those that it coordinates."""

    def names(brokers: "Brokers") -> list[str]:
        from headrace.client.transactions.admin import TransactionAdmin  # noqa: PLC0415

        return [each.transactional_id for each in TransactionAdmin(brokers).list_transactions()]

    return _items(_from_cluster(context, names), begun)


def named(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return brokers or topics, depending on the KIND before the cursor."""
    candidates = brokers if context.params.get("kind") == "broker" else topics
    return candidates(context, parameter, begun)


def settings(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the settings of a topic, or the dynamic settings of a broker."""
    from headrace.broker.settings.broker import BROKER_SETTINGS  # noqa: PLC0415  slow to import
    from headrace.broker.settings.setting import Scope  # noqa: PLC0415
    from headrace.broker.settings.topic import TOPIC_SETTINGS  # noqa: PLC0415

    if context.params.get("kind") == "broker":
        found = [each for each in BROKER_SETTINGS.by_name.values() if each.scope is not Scope.READ_ONLY]
    else:
        found = list(TOPIC_SETTINGS.by_name.values())
    matching = sorted((each.name, each.doc) for each in found if each.name.startswith(begun))
    return [CompletionItem(name, help=doc) for name, doc in matching]


def broker_settings(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return every setting of a broker."""
    from headrace.broker.settings.broker import BROKER_SETTINGS  # noqa: PLC0415  slow to import

    return _items(BROKER_SETTINGS.by_name, begun)


def subjects(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the subjects of the schema registry."""
    from headrace.cli.support.registry import connect  # noqa: PLC0415

    session = _session(context)
    return _items(_in_time(lambda: connect(session, TIMEOUT_S).subjects()), begun)


def _items(names: Iterable[str], begun: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in sorted(set(names)) if name.startswith(begun)]


def _session(context: click.Context) -> Session:
    """Return the session that the options before the cursor describe; no command runs to make one."""
    return context.ensure_object(Session)


def _from_cluster(context: click.Context, read: Callable[["Brokers"], Sequence[T]]) -> Sequence[T]:
    from headrace.client.wire.brokers import Brokers  # noqa: PLC0415

    session = _session(context)

    def connect_and_read() -> Sequence[T]:
        with Brokers(session.connection, answer_s=TIMEOUT_S) as brokers:
            return read(brokers)

    return _in_time(connect_and_read)


def _in_time(read: Callable[[], Sequence[T]]) -> Sequence[T]:
    """Return what `read` returns, or nothing after the timeout; its thread then ends with the process."""
    from headrace.client.errors import ClientError  # noqa: PLC0415
    from headrace.system.background import BackgroundThread  # noqa: PLC0415

    found: list[T] = []

    def run() -> None:
        try:
            found.extend(read())
        except (ClientError, OSError):
            return  # nothing to offer

    reading = BackgroundThread(run, name="completion", stop=None)
    reading.start()
    reading.join(TIMEOUT_S)
    return list(found)
