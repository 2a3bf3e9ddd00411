"""What commands share: the cluster they talk to, --bootstrap and --json, values of options, confirmations."""

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from headrace.cli.support.output import Drawable, draw, to_json

if TYPE_CHECKING:
    from headrace.client.admin.admin import Admin
    from headrace.client.admin.topics import TopicAdmin
    from headrace.client.cluster.cluster import Cluster
    from headrace.client.groups.admin import GroupAdmin
    from headrace.client.transactions.admin import TransactionAdmin
    from headrace.client.wire.brokers import Brokers
    from headrace.client.wire.connection_settings import ConnectionSettings

BOOTSTRAP: Final = "127.0.0.1:9092"
BOOTSTRAP_VARIABLE: Final = "HEADRACE_BOOTSTRAP"
COMMAND_CONFIG: Final = "HEADRACE_COMMAND_CONFIG"  # an environment variable
REGISTRY: Final = "http://127.0.0.1:8080"
REGISTRY_VARIABLE: Final = "HEADRACE_REGISTRY"
INTERRUPTED: Final = 130  # the exit status that shells use for a process that SIGINT has ended

_DURATION: Final = re.compile(
    r"P(?=[\dT])(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)
_AGO: Final = re.compile(r"-(\d{1,9})([smhd])")
_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MOST_COMPARED: Final = 10_000  # topics whose names are compared with a name that does not exist
_SIMILAR: Final = 0.75
_REGISTRY_TOPICS: Final = frozenset({"_schemas"})  # brokers do not mark it as internal, as Kafka's do not

Command = TypeVar("Command", bound=Callable[..., Any])


def _variable(name: str) -> str | None:
    """Return an environment variable; None if it is not set, or empty."""
    return os.environ.get(name) or None


class PartlyDone(click.ClickException):
    """A failure after part of the work was done; `done` describes that part in --json output."""

    def __init__(self, message: str, done: Mapping[str, object]) -> None:
        super().__init__(message)
        self.done = done


class Interrupted(PartlyDone):
    """Ctrl-C after part of the work was done."""

    exit_code = INTERRUPTED


@dataclass
class Session:
    """One run of a command."""

    bootstrap_option: str | None = None
    command_config: Path | None = None  # a file with a client's settings
    profile: str | None = None  # the name of such a file
    uses_current_profile: bool = False  # known once a command has asked for its settings
    as_json: bool = False
    registry_option: str | None = None

    @property
    def named(self) -> str | None:
        """The bootstrap servers that the user names: an option takes precedence over the environment."""
        in_file = self._configured.bootstrap or None
        return self.bootstrap_option or self.preferred(_variable(BOOTSTRAP_VARIABLE), in_file)

    def preferred(self, variable: str | None, in_file: str | None) -> str | None:
        """Return the value of an environment variable or of the settings file, whichever counts.

        A file that an option names counts more than a variable, and a variable more than other files.
        """
        by_option = self.command_config is not None or self.profile is not None
        return in_file or variable if by_option else variable or in_file

    @property
    def bootstrap(self) -> str:
        return self.named or BOOTSTRAP

    @property
    def connection(self) -> "ConnectionSettings":
        """How commands connect to the cluster; BadSetting if the file of --command-config is wrong."""
        return self._configured.at(self.bootstrap)

    @cached_property
    def command_config_path(self) -> Path | None:
        """The file of --command-config, of a profile, or that the environment names.

        The current profile counts only if nothing else names a cluster, so that its credentials are not sent
        to another one.
        """
        from headrace.cli.support.profiles import PROFILE, Profiles  # noqa: PLC0415  not for --help

        if self.command_config is not None:
            return self.command_config
        profiles = Profiles.of_user(os.environ)
        if self.profile is not None:
            return profiles.path(self.profile)
        file, name = _variable(COMMAND_CONFIG), _variable(PROFILE)
        if file is not None:
            return Path(file)
        if name is None and self.bootstrap_option is None and _variable(BOOTSTRAP_VARIABLE) is None:
            name = profiles.current
            self.uses_current_profile = name is not None
        return None if name is None else profiles.path(name)

    @cached_property
    def client_settings(self) -> dict[str, str]:
        """The settings in that file, with references; BadSetting if it cannot be read."""
        from headrace.client.wire.connection_settings import read_client_file  # noqa: PLC0415

        path = self.command_config_path
        return {} if path is None else read_client_file(path)

    @cached_property
    def _configured(self) -> "ConnectionSettings":
        from headrace.client.errors import BadSetting  # noqa: PLC0415
        from headrace.client.wire.connection_settings import ConnectionSettings  # noqa: PLC0415  not for --help

        settings = self.client_settings
        try:
            return ConnectionSettings.of(settings)
        except BadSetting as error:
            raise BadSetting(f"{self.command_config_path}: {error}") from error

    @cached_property
    def admin(self) -> "Admin":
        from headrace.client.admin.admin import Admin  # noqa: PLC0415  many commands do without

        return Admin(self.connection)

    @cached_property
    def brokers(self) -> "Brokers":
        from headrace.client.wire.brokers import Brokers  # noqa: PLC0415

        return Brokers(self.connection)

    @cached_property
    def topics(self) -> "TopicAdmin":
        from headrace.client.admin.topics import TopicAdmin  # noqa: PLC0415

        return TopicAdmin(self.brokers)

    def similar_topics(self, name: str) -> str:
        """Return `did you mean orders?` for a topic that does not exist; empty if no name is similar."""
        from headrace.client.errors import ClientError  # noqa: PLC0415

        try:
            names = self.topics.names()[:_MOST_COMPARED]
        except ClientError:  # the command itself reports a cluster that does not answer
            return ""
        similar = get_close_matches(name, [other for other in names if other != name], n=2, cutoff=_SIMILAR)
        return f"did you mean {' or '.join(similar)}?" if similar else ""

    @cached_property
    def groups(self) -> "GroupAdmin":
        from headrace.client.groups.admin import GroupAdmin  # noqa: PLC0415

        return GroupAdmin(self.brokers)

    @cached_property
    def transactions(self) -> "TransactionAdmin":
        from headrace.client.transactions.admin import TransactionAdmin  # noqa: PLC0415

        return TransactionAdmin(self.brokers)

    @cached_property
    def cluster(self) -> "Cluster":
        from headrace.client.cluster.cluster import Cluster  # noqa: PLC0415

        return Cluster(self.connection)

    def show(self, result: object, text: str | Callable[[], Drawable]) -> None:
        """Print `result` as JSON with --json, otherwise `text`: a sentence, or a table that is drawn."""
        if self.as_json:
            click.echo(to_json(result))
        elif isinstance(text, str):
            click.echo(text)
        else:
            draw(text())


def into_session(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Return an option's callback that stores its value in the session's attribute `name`."""

    def store(context: click.Context, _parameter: click.Parameter, value: object) -> None:
        if value:
            session = context.ensure_object(Session)
            setattr(session, name, value)
            if session.profile is not None and session.command_config is not None:
                raise click.UsageError("Give --profile or --command-config, not both.")

    return store


def profile_names(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    from headrace.cli.support.profiles import Profiles  # noqa: PLC0415

    return [name for name in Profiles.of_user(os.environ).names if name.startswith(begun)]


def json_option(command: Command) -> Command:
    """Give a command --json and, as its first argument, the session."""
    return _json(click.pass_obj(command))  # type: ignore[return-value]


def options(command: Command) -> Command:
    """Give a command the options of `root_options` and, as its first argument, the session."""
    return root_options(click.pass_obj(command))  # type: ignore[return-value]


def root_options(command: Command) -> Command:
    """Give a command --bootstrap, --command-config, --profile and --json: `headrace` itself has them, too."""
    return bootstrap_option(command_config_option(_profile(_json(command))))


_json = click.option(
    "--json", "-J", is_flag=True, expose_value=False, callback=into_session("as_json"), help="Print JSON."
)
bootstrap_option = click.option(
    "--bootstrap",
    "-b",
    metavar="HOST:PORT,...",
    expose_value=False,
    callback=into_session("bootstrap_option"),
    help="The brokers to connect to first. Default: those of --command-config or of the profile, "
    f"HEADRACE_BOOTSTRAP, or {BOOTSTRAP}.",
)
command_config_option = click.option(
    "--command-config",
    "-F",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    expose_value=False,
    callback=into_session("command_config"),
    help="How to connect to a secured cluster: a properties file of Java's clients or of librdkafka's. "
    f"Default: {COMMAND_CONFIG}.",
)
_profile = click.option(
    "--profile",
    "-P",
    metavar="NAME",
    expose_value=False,
    callback=into_session("profile"),
    shell_complete=profile_names,
    help="The profile of a cluster, as `headrace profile add` makes it. Default: HEADRACE_PROFILE, or that "
    "of `headrace profile use`.",
)
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
if_exists_option = click.option("--if-exists", is_flag=True, help="Ignore names that do not exist.")
partition_option = click.option(
    "--partition",
    "-p",
    "indexes",
    type=click.IntRange(0),
    multiple=True,
    help="Only this partition; repeatable.",
)
internal_option = click.option(
    "--internal", is_flag=True, help="Allow topics of the cluster itself and of the schema registry."
)
acks_option = click.option(
    "--acks",
    "-a",
    type=click.Choice(["0", "1", "all"]),
    default="all",
    help="Who has to have a record before it counts as written: nobody, its leader, or all in-sync replicas.",
)
compression_option = click.option(
    "--compression",
    "-z",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    help="The compression of record batches.",
)
host_option = click.option("--host", default="127.0.0.1", help="The address to listen on.")
existing_file = click.Path(exists=True, dir_okay=False, path_type=Path)
directory = click.Path(file_okay=False, path_type=Path)


def port_option(default: int, help_: str) -> Callable[[Command], Command]:
    """Return a --port that may be 0 for a free one."""
    return click.option("--port", type=click.IntRange(0, 65535), default=default, help=help_)


def data_option(help_: str) -> Callable[[Command], Command]:
    """Return a --data that has to be given, as the parameter `data_dir`."""
    return click.option("--data", "data_dir", type=directory, required=True, help=help_)


def pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """Return `NAME=VALUE` texts as a dict; of several values for one name the last counts."""
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise click.UsageError(f"{option} {text}: expected NAME=VALUE.")
        values[name.strip()] = value.strip()
    return values


def time_ms(text: str, option: str) -> int:
    """Return the milliseconds of `2026-01-31T12:00:00+01:00`, `@1769857200000`, or `-1h`, an hour ago.

    A time without a zone is local time.
    """
    if text.startswith("@") and text[1:].isdigit():
        return int(text[1:])
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return int(time.time() * 1000) - int(ago[1]) * _UNIT_MS[ago[2]]
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise click.UsageError(
            f"{option} {text}: expected a time such as 2026-01-31T12:00:00+01:00 or -1h."
        ) from None


def duration_ms(text: str, option: str) -> int:
    """Return the milliseconds of an ISO 8601 duration: `PT1H30M`, `P2DT0.5S`."""
    match = _DURATION.fullmatch(text.upper())
    if match is None:
        raise click.UsageError(f"{option} {text}: expected a duration such as PT1H30M or P7D.")
    parts = {unit: float(number) for unit, number in match.groupdict().items() if number}
    try:
        return timedelta(**parts) // timedelta(milliseconds=1)
    except OverflowError:
        raise click.UsageError(f"{option} {text}: the duration is too long.") from None


def confirm(question: str, *, action: str, declined: str = "nothing was deleted", yes: bool) -> None:
    """Return if `yes` was given or the person at the terminal confirms.

    Raise ClickException with `declined` if not, and UsageError if stdin is not a terminal.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"Confirmation needs a terminal: give --yes {action}.")
    if not click.confirm(question, err=True):
        raise click.ClickException(declined)


def check_internal(topic: str, *, is_internal: bool, allowed: bool) -> None:
    """Raise ClickException for a topic of the cluster or of the schema registry unless it is `allowed`."""
    if (is_internal or topic in _REGISTRY_TOPICS) and not allowed:
        owner = "the schema registry" if topic in _REGISTRY_TOPICS else "the cluster"
        raise click.ClickException(f"{topic} is an internal topic of {owner}: give --internal to allow it")
