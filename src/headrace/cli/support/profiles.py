"""Profiles: how to connect to a cluster, under a name. Each is a properties file, as --command-config.

    ~/.config/headrace/profiles/prod.properties     bootstrap.servers=..., security.protocol=..., mode 600
    ~/.config/headrace/profile                      the name of the profile that `headrace profile use` chose

References such as ${env:PASSWORD} stay references in the file, and are resolved when a command connects.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headrace.client.errors import ClientError
from headrace.client.properties import to_properties
from headrace.client.wire.config_providers import has_reference, without_references
from headrace.security.private_files import write_private

PROFILE: Final = "HEADRACE_PROFILE"  # an environment variable
SUFFIX: Final = ".properties"
HIDDEN: Final = "[hidden]"
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_SECRETS: Final = ("password", "secret", "jaas.config", "user.info", "token", "keystore.key", "ssl.key.pem")
_FILES: Final = ".location"
_USER_IN_URL: Final = re.compile(r"(?<=://)[^/@]*@")


class NoSuchProfile(ClientError):
    """There is no profile of this name."""


def check_name(name: str) -> str:
    """Return the name; ClientError if a profile cannot have it."""
    if not _NAME.fullmatch(name):
        raise ClientError(
            f"there can be no profile {name[:80]!r}: a name has 1 to 64 ASCII letters, digits, '.', '_' and "
            "'-'"
        )
    return name


def profile_settings(
    of_file: Mapping[str, str], given: Mapping[str, str], bootstrap: str | None, directory: Path
) -> dict[str, str]:
    """Return the settings of a new profile: those of a file, single ones, and the bootstrap servers.

    The later ones win. Relative paths become absolute, because a profile is used in other directories than
    `directory`. ClientError if there are no bootstrap servers.
    """
    merged = {**of_file, **given}
    named = [bootstrap, merged.pop("bootstrap.servers", ""), merged.pop("metadata.broker.list", "")]
    servers = next(filter(None, named), "").strip()
    if not servers:
        raise ClientError("the profile has no bootstrap servers: give --bootstrap HOST:PORT,...")
    settings = {"bootstrap.servers": servers}
    for name, value in merged.items():
        is_elsewhere = value == "probe" or "://" in value or has_reference(value)
        is_path = name.endswith(_FILES) and value and not is_elsewhere
        settings[name] = str(directory / value) if is_path else value
    return settings


def without_secrets(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for display: secrets are hidden, references to them are not."""
    return {
        name: HIDDEN if is_secret(name, value) else _USER_IN_URL.sub(f"{HIDDEN}@", value)
        for name, value in settings.items()
    }


def is_secret(name: str, value: str) -> bool:
    """Whether a setting contains a secret, and not only a reference to one."""
    is_reference = has_reference(value) and not without_references(value)
    return name.endswith(_SECRETS) and not is_reference


@dataclass(frozen=True, slots=True)
class Profiles:
    """The profiles in a directory, which is created with the first one."""

    directory: Path

    @classmethod
    def of_user(cls, environment: Mapping[str, str]) -> "Profiles":
        """Return the profiles of the user: in XDG_CONFIG_HOME, or ~/.config."""
        configured = environment.get("XDG_CONFIG_HOME", "")
        home = environment.get("HOME") or os.path.expanduser("~")  # noqa: PTH111  Path.home() raises an error
        base = Path(configured) if configured.startswith("/") else Path(home) / ".config"
        return cls(base / "headrace")

    @property
    def names(self) -> list[str]:
        return sorted(each.stem for each in (self.directory / "profiles").glob(f"*{SUFFIX}"))

    @property
    def current(self) -> str | None:
        """The profile that commands use without --profile; None if there is none."""
        try:
            return (self.directory / "profile").read_text("utf-8").strip()[:80] or None
        except (FileNotFoundError, NotADirectoryError):
            return None

    def path(self, name: str) -> Path:
        """Return the file of a profile; NoSuchProfile if there is none."""
        path = self._file(name)
        if not path.is_file():
            known = ", ".join(self.names)
            others = f"only {known}" if known else "and no other: `headrace profile add` adds one"
            raise NoSuchProfile(f"there is no profile {name}, {others}")
        return path

    def has(self, name: str) -> bool:
        return self._file(name).exists()

    def add(self, name: str, settings: Mapping[str, str]) -> Path:
        """Write a profile, which only its owner may read."""
        path = self._file(name)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(path, to_properties(settings))
        return path

    def remove(self, name: str) -> None:
        """Delete a profile; if it is the current one, there is none afterwards."""
        self.path(name).unlink()
        if self.current == name:
            self.use(None)

    def use(self, name: str | None) -> None:
        """Make a profile the current one; None for none."""
        chosen = self.directory / "profile"
        if name is None:
            chosen.unlink(missing_ok=True)
            return
        self.path(name)
        write_private(chosen, f"{name}\n")

    def _file(self, name: str) -> Path:
        return self.directory / "profiles" / f"{check_name(name)}{SUFFIX}"
