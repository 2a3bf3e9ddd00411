"""`headrace profile`: add, list, show, use and remove the profiles of clusters."""

import os
from collections.abc import Sequence
from pathlib import Path

import click

from headrace.cli.support.lazy import LazyGroup
from headrace.cli.support.output import table
from headrace.cli.support.profiles import (
    HIDDEN,
    PROFILE,
    NoSuchProfile,
    Profiles,
    profile_settings,
    without_secrets,
)
from headrace.cli.support.session import (
    Session,
    bootstrap_option,
    command_config_option,
    confirm,
    json_option,
    pairs,
    profile_names,
    yes_option,
)
from headrace.client.errors import BadSetting, ClientError
from headrace.client.wire.connection_settings import ConnectionSettings, read_client_file


def _profiles() -> Profiles:
    return Profiles.of_user(os.environ)


@click.group(cls=LazyGroup)
def profile() -> None:
    """Add, choose and remove the profiles of clusters:  headrace profile add prod --bootstrap one:9092

    A profile has a name, the addresses of a cluster and the settings of a secured one. Every command has
    --profile.
    """


@profile.command()
@click.argument("name")
@click.option(
    "-X",
    "--setting",
    "given",
    metavar="NAME=VALUE",
    multiple=True,
    help="A client's setting, such as sasl.password='${env:PASSWORD}' or schema.registry.url; repeatable.",
)
@click.option("--replace", is_flag=True, help="Replace a profile of this name.")
@bootstrap_option
@command_config_option
@json_option
def add(session: Session, name: str, given: Sequence[str], *, replace: bool) -> None:
    """Add a profile:  headrace profile add prod --bootstrap one:9093 --command-config client.properties

    The settings are copied into a file that only you can read. A reference such as ${env:PASSWORD} or
    ${file:PATH:KEY} stays a reference, and is resolved by each command. Nothing is sent to the cluster.

    \b
      headrace profile add prod -b one:9093 -X security.protocol=SASL_SSL -X sasl.mechanism=PLAIN \\
        -X sasl.username=alice -X 'sasl.password=${env:PROD_PASSWORD}' -X schema.registry.url=https://one:8081
    """  # noqa: D301  \b keeps click from wrapping these lines
    profiles = _profiles()
    if profiles.has(name) and not replace:
        raise ClientError(f"profile {name} exists already: give --replace, or another name")
    in_file = {} if session.command_config is None else read_client_file(session.command_config)
    settings = profile_settings(in_file, pairs(given, "-X"), session.bootstrap_option, Path.cwd())
    try:
        ConnectionSettings.of(settings)
    except BadSetting as error:
        from headrace.client.wire.config_providers import UnresolvedReference  # noqa: PLC0415

        if not isinstance(error, UnresolvedReference):  # what the settings refer to need not exist yet
            raise BadSetting(f"profile {name}: {error}") from error
    path = profiles.add(name, settings)
    shown = {"name": name, "file": str(path), "settings": without_secrets(settings)}
    session.show(shown, f"added profile {name} in {path}")


@profile.command("list")
@json_option
def list_(session: Session) -> None:
    """List the profiles:  headrace profile list"""
    profiles, chosen = _profiles(), _chosen()
    listed, rows = [], []
    for name in profiles.names:
        settings = read_client_file(profiles.path(name))
        bootstrap = settings.get("bootstrap.servers", "")
        security = settings.get("security.protocol", "PLAINTEXT")
        current = name == chosen
        listed.append({"name": name, "bootstrap": bootstrap, "security": security, "current": current})
        rows.append((name, bootstrap, security, "current" if current else ""))
    none = "there are no profiles: `headrace profile add` adds one"
    session.show(listed, (lambda: table(["profile", "bootstrap", "security", ""], rows)) if rows else none)


def _chosen() -> str | None:
    return os.environ.get(PROFILE) or _profiles().current


@profile.command()
@click.argument("name", required=False, shell_complete=profile_names)
@click.option("--secrets", is_flag=True, help=f"Print passwords, too, in place of {HIDDEN}.")
@json_option
def show(session: Session, name: str | None, *, secrets: bool) -> None:
    """Show a profile, or the current one:  headrace profile show prod"""
    chosen = name or _chosen()
    if chosen is None:
        raise NoSuchProfile("no profile is in use: name one (`headrace profile list` lists them)")
    path = _profiles().path(chosen)
    settings = read_client_file(path)
    shown = settings if secrets else without_secrets(settings)
    session.show(
        {"name": chosen, "file": str(path), "settings": shown},
        lambda: table(["setting", "value"], shown.items(), title=f"{chosen}: {path}"),
    )


@profile.command()
@click.argument("name", required=False, shell_complete=profile_names)
@click.option("--none", "no_profile", is_flag=True, help="Use no profile any more.")
@json_option
def use(session: Session, name: str | None, *, no_profile: bool) -> None:
    """Use a profile from now on:  headrace profile use prod

    Commands without --profile, --bootstrap and --command-config use it, unless a variable such as
    HEADRACE_BOOTSTRAP names another cluster.
    """
    if (name is None) != no_profile:
        raise click.UsageError("Give the name of a profile, or --none.")
    _profiles().use(name)
    said = "no profile is in use" if name is None else f"commands without --profile use {name}"
    session.show({"profile": name}, said)


@profile.command()
@click.argument("name", shell_complete=profile_names)
@yes_option
@json_option
def remove(session: Session, name: str, *, yes: bool) -> None:
    """Remove a profile with its credentials:  headrace profile remove prod"""
    profiles = _profiles()
    profiles.path(name)  # a name that does not exist needs no confirmation
    confirm(
        f"Remove profile {name}?", action="to remove the profile", declined="nothing was removed", yes=yes
    )
    profiles.remove(name)
    session.show({"removed": name}, f"removed profile {name}")
