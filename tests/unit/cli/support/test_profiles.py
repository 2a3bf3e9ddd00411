"""Profiles: what goes into one, what is shown of it, and which one counts."""

from pathlib import Path

import click
import pytest

from headrace.cli.main import commands
from headrace.cli.support.profiles import HIDDEN, NoSuchProfile, Profiles, profile_settings, without_secrets
from headrace.cli.support.session import Session
from headrace.client.errors import ClientError

HERE = Path("/home/alice")


def test_single_settings_replace_those_of_the_file_and_paths_become_absolute() -> None:
    in_file = {
        "bootstrap.servers": "one:9092",
        "ssl.truststore.location": "ca.pem",
        "sasl.password": "${env:PASSWORD}",
        "ssl.keystore.location": "${env:STORE}",
    }
    assert profile_settings(in_file, {"sasl.username": "bob"}, "two:9093", HERE) == {
        "bootstrap.servers": "two:9093",
        "ssl.truststore.location": "/home/alice/ca.pem",
        "sasl.password": "${env:PASSWORD}",
        "ssl.keystore.location": "${env:STORE}",
        "sasl.username": "bob",
    }


def test_a_profile_needs_bootstrap_servers_by_either_name() -> None:
    assert profile_settings({"metadata.broker.list": "one:1"}, {}, None, HERE) == {
        "bootstrap.servers": "one:1"
    }
    with pytest.raises(ClientError, match="no bootstrap servers: give --bootstrap"):
        profile_settings({"sasl.username": "bob"}, {}, None, HERE)


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("sasl.password", "wonder", HIDDEN),
        ("sasl.password", "${env:P}", "${env:P}"),
        ("sasl.password", "x${env:P}", HIDDEN),
        ("sasl.jaas.config", 'Login required password="p";', HIDDEN),
        ("basic.auth.user.info", "alice:p", HIDDEN),
        ("ssl.keystore.key", "-----BEGIN", HIDDEN),
        ("ssl.keystore.type", "PEM", "PEM"),
        ("ssl.key.location", "/key.pem", "/key.pem"),
        ("schema.registry.url", "https://alice:p@one:8081", f"https://{HIDDEN}@one:8081"),
    ],
)
def test_secrets_are_hidden_and_references_are_not(name: str, value: str, shown: str) -> None:
    assert without_secrets({name: value}) == {name: shown}


@pytest.mark.parametrize("name", ["", ".", "../x", "a/b", "-x", "a" * 65, "ü"])
def test_a_name_cannot_leave_the_directory(tmp_path: Path, name: str) -> None:
    with pytest.raises(ClientError, match="there can be no profile"):
        Profiles(tmp_path).path(name)


def test_files_are_for_their_owner_alone_and_a_removed_profile_is_not_current(tmp_path: Path) -> None:
    profiles = Profiles(tmp_path / "headrace")
    path = profiles.add("prod", {"bootstrap.servers": "one:9092"})
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    profiles.use("prod")
    assert (profiles.names, profiles.current) == (["prod"], "prod")

    profiles.remove("prod")
    assert (profiles.names, profiles.current) == ([], None)
    with pytest.raises(NoSuchProfile, match="there is no profile prod"):
        profiles.use("prod")


@pytest.mark.parametrize(
    ("home", "expected"),
    [
        ({"XDG_CONFIG_HOME": "/x", "HOME": "/h"}, "/x/headrace"),
        ({"XDG_CONFIG_HOME": "relative", "HOME": "/h"}, "/h/.config/headrace"),
        ({"HOME": "/h"}, "/h/.config/headrace"),
    ],
)
def test_the_directory_is_that_of_xdg(home: dict[str, str], expected: str) -> None:
    assert Profiles.of_user(home).directory == Path(expected)


# -- which cluster a command talks to --------------------------------------------------------------


def session_of(*arguments: str) -> Session:
    session = Session()
    with commands.make_context("headrace", [*arguments, "topic", "list"], obj=session) as context:
        context.invoke(commands.callback or click.get_current_context)
    return session


@pytest.mark.parametrize(
    ("arguments", "variables", "bootstrap", "secured"),
    [
        ((), {}, "prod:1", True),
        (("--profile", "test"), {}, "test:1", True),
        (("--profile", "test"), {"HEADRACE_PROFILE": "prod", "HEADRACE_BOOTSTRAP": "env:1"}, "test:1", True),
        ((), {"HEADRACE_PROFILE": "test"}, "test:1", True),
        ((), {"HEADRACE_PROFILE": "test", "HEADRACE_BOOTSTRAP": "env:1"}, "env:1", True),
        (("--profile", "test", "--bootstrap", "own:1"), {}, "own:1", True),
        # The current profile's credentials are not sent to a cluster that is named otherwise.
        ((), {"HEADRACE_BOOTSTRAP": "env:1"}, "env:1", False),
        (("--bootstrap", "own:1"), {}, "own:1", False),
    ],
)
def test_what_is_named_more_directly_counts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    arguments: tuple[str, ...],
    variables: dict[str, str],
    bootstrap: str,
    secured: bool,
) -> None:
    for name in ("HEADRACE_PROFILE", "HEADRACE_BOOTSTRAP", "HEADRACE_COMMAND_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    profiles = Profiles(tmp_path / "headrace")
    for name in ("prod", "test"):
        profiles.add(name, {"bootstrap.servers": f"{name}:1", "security.protocol": "SSL"})
    profiles.use("prod")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    session = session_of(*arguments)
    assert session.connection.bootstrap == bootstrap
    assert (session.connection.security.tls is not None) == secured


def test_a_profile_and_a_file_contradict_each_other(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.touch()
    with pytest.raises(click.UsageError, match="Give --profile or --command-config, not both"):
        session_of("--profile", "prod", "--command-config", str(file))
