"""`headrace completion`, and the values that Tab offers for names in the cluster and for settings.

Completion waits one second at most for the cluster. Without an answer it offers nothing and prints no error,
because the user is in the middle of a line.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem, get_completion_class

from headrace.cli.support.session import Session, json_option

if TYPE_CHECKING:
    from headrace.client.wire.brokers import Brokers

SHELLS: Final = ("bash", "zsh", "fish")
TIMEOUT_S: Final = 1.0

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


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


def _names(read: Callable[["Brokers"], Iterable[str]]) -> Completer:
    """Return a completer of names in the cluster; those with `__` in front need a begun word."""

    def complete(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        from headrace.client.errors import ClientError  # noqa: PLC0415  slow to import
        from headrace.client.wire.brokers import Brokers  # noqa: PLC0415
        from headrace.system.background import BackgroundThread  # noqa: PLC0415

        connection, names = context.ensure_object(Session).connection, set[str]()

        def connect_and_read() -> None:
            try:
                with Brokers(connection, answer_s=TIMEOUT_S) as brokers:
                    names.update(read(brokers))
            except (ClientError, OSError):
                return  # nothing to offer

        # After the timeout, the thread ends with the process.
        reading = BackgroundThread(connect_and_read, name="completion", stop=None)
        reading.start()
        reading.join(TIMEOUT_S)
        offered = [name for name in sorted(names) if begun or not name.startswith("__")]
        return [CompletionItem(name) for name in offered if name.startswith(begun)]

    return complete


def _groups(brokers: "Brokers") -> Iterable[str]:
    from headrace.client.groups.coordinators import listed  # noqa: PLC0415

    return listed(brokers).groups


def _transactional_ids(brokers: "Brokers") -> Iterable[str]:
    from headrace.client.transactions.admin import TransactionAdmin  # noqa: PLC0415

    return [transaction.transactional_id for transaction in TransactionAdmin(brokers).list_transactions()]


topics = _names(lambda brokers: [topic.name or "" for topic in brokers.any_metadata(None, TIMEOUT_S).topics])
brokers = _names(lambda brokers: [str(broker.node_id) for broker in brokers.any_metadata().brokers])
groups = _names(_groups)
transactional_ids = _names(_transactional_ids)


def named(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return brokers or topics, depending on the KIND before the cursor."""
    complete = brokers if context.params.get("kind") == "broker" else topics
    return complete(context, parameter, begun)


def settings(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the settings of a topic, or those of a broker: dynamic ones after the KIND, all for --set."""
    from headrace.broker.settings.broker import BROKER_SETTINGS  # noqa: PLC0415  slow to import
    from headrace.broker.settings.setting import Scope  # noqa: PLC0415
    from headrace.broker.settings.topic import TOPIC_SETTINGS  # noqa: PLC0415

    offered = list(TOPIC_SETTINGS.by_name.values())
    if parameter.name == "sets":
        offered = list(BROKER_SETTINGS.by_name.values())
    elif context.params.get("kind") == "broker":
        offered = [
            setting for setting in BROKER_SETTINGS.by_name.values() if setting.scope is not Scope.READ_ONLY
        ]
    matching = sorted((setting.name, setting.doc) for setting in offered if setting.name.startswith(begun))
    return [CompletionItem(name, help=doc) for name, doc in matching]
