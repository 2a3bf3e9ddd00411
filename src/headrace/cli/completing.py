"""What Tab offers where a topic, a group, a broker or a setting is wanted: those that there are.

The cluster is asked for a second at most. Whoever does not answer in time, or at all, completes nothing, and
says nothing either: a person is in the middle of a line.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from headrace.cli.session import Session

if TYPE_CHECKING:
    from headrace.client.wire.brokers import Brokers

PATIENCE_S: Final = 1.0

Answer = TypeVar("Answer")


def topics(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Topics; those of the cluster's own only for who has begun with an underscore."""

    def ask(brokers: "Brokers") -> list[str]:
        return [topic.name or "" for topic in brokers.any_metadata(None, PATIENCE_S).topics]

    own = begun.startswith("_")
    return _items([name for name in _asked(context, ask) if own or not name.startswith("__")], begun)


def brokers(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """The numbers of live brokers, with where they are; 1,2,3 too, one after the other."""

    def ask(brokers: "Brokers") -> list[tuple[str, str]]:
        return [(str(each.node_id), f"{each.host}:{each.port}") for each in brokers.any_metadata().brokers]

    before, comma, last = begun.rpartition(",")
    named = set(before.split(","))
    return [
        CompletionItem(f"{before}{comma}{number}", help=where)
        for number, where in sorted(_asked(context, ask), key=lambda each: int(each[0]))
        if number.startswith(last) and number not in named
    ]


def groups(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Groups: every broker is asked, for each knows its own."""

    def ask(brokers: "Brokers") -> list[str]:
        from headrace.client.groups.coordinators import GroupCoordinators  # noqa: PLC0415

        return list(GroupCoordinators(brokers).listed().groups)

    return _items(_asked(context, ask), begun)


def named(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """What a setting can be of, once it is known which kind: a topic's name, or a broker's number."""
    of = brokers if context.params.get("kind") == "broker" else topics
    return of(context, parameter, begun)


def settings(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """The settings of a topic, or those of a broker that change while it runs."""
    from headrace.broker.broker_settings import BROKER_SETTINGS  # noqa: PLC0415  slow to import
    from headrace.broker.settings import Scope  # noqa: PLC0415
    from headrace.broker.topic_settings import TOPIC_SETTINGS  # noqa: PLC0415

    if context.params.get("kind") == "broker":
        found = [each for each in BROKER_SETTINGS.by_name.values() if each.scope is not Scope.READ_ONLY]
    else:
        found = list(TOPIC_SETTINGS.by_name.values())
    there = sorted((each.name, each.doc) for each in found if each.name.startswith(begun))
    return [CompletionItem(name, help=doc) for name, doc in there]


def broker_settings(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Every setting of a broker."""
    from headrace.broker.broker_settings import BROKER_SETTINGS  # noqa: PLC0415  slow to import

    return _items(BROKER_SETTINGS.by_name, begun)


def subjects(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """The subjects of the registry."""
    from headrace.client.schemas.registry import Registry  # noqa: PLC0415

    registry = _session(context).registry
    return _items(_in_time(lambda: Registry(registry, timeout_s=PATIENCE_S).subjects()), begun)


def _items(names: Iterable[str], begun: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in sorted(set(names)) if name.startswith(begun)]


def _session(context: click.Context) -> Session:
    """As the options before the cursor have it; the command that would look at variables does not run."""
    session = context.ensure_object(Session)
    session.look_around()
    return session


def _asked(context: click.Context, ask: Callable[["Brokers"], Sequence[Answer]]) -> Sequence[Answer]:
    from headrace.client.wire.brokers import Brokers  # noqa: PLC0415

    bootstrap = _session(context).bootstrap

    def connect_and_ask() -> Sequence[Answer]:
        with Brokers(bootstrap, answer_s=PATIENCE_S) as brokers:
            return ask(brokers)

    return _in_time(connect_and_ask)


def _in_time(ask: Callable[[], Sequence[Answer]]) -> Sequence[Answer]:
    """The answer, or nothing when the time is up; a thread that still waits ends with the process."""
    from headrace.background import BackgroundThread  # noqa: PLC0415
    from headrace.client.errors import ClientError  # noqa: PLC0415

    answer: list[Answer] = []

    def run() -> None:
        try:
            answer.extend(ask())
        except (ClientError, OSError):
            return  # nothing to offer

    asking = BackgroundThread(run, name="completion", stop=None)
    asking.start()
    asking.join(PATIENCE_S)
    return list(answer)
