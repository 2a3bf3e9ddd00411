"""Credentials for ZooKeeper in a JAAS file: ZooKeeper reads its section `Server`, and clients `Client`.

The embedded coordinator, brokers, Apache ZooKeeper and Java's clients can use the same file.
"""

import os
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from headrace.coordination.errors import CoordinationError
from headrace.security.sasl.jaas import jaas_options, jaas_section
from headrace.security.sasl.plain import passwords

FILE_NAME: Final = "jaas.conf"  # in the coordinator's data directory
USER: Final = "headrace"
_MODULE: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"
_PASSWORD_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Credential:
    name: str
    password: str = field(repr=False)

    @classmethod
    def of_options(cls, options: dict[str, str] | None, source: str) -> "Credential":
        """Return `username` and `password`; CoordinationError names the `source` if one is missing."""
        if not options or not options.get("username") or not options.get("password"):
            raise CoordinationError(
                f"{source} has no username and password for ZooKeeper: expected {_MODULE} required "
                'username="..." password="...";'
            )
        return cls(options["username"], options["password"])

    @classmethod
    def of_config(cls, config: str, source: str) -> "Credential":
        return cls.of_options(jaas_options(config), source)

    @classmethod
    def of_file(cls, path: Path) -> "Credential":
        """Return the credential in the section `Client` of a JAAS file."""
        return cls.of_options(jaas_section(_read(path), "Client"), f"the section Client of {path}")


def users_of_file(path: Path) -> dict[str, str]:
    """Return the users in the section `Server` of a JAAS file, with their passwords.

    CoordinationError if there are none, or if other users of this machine may read the file.
    """
    users = passwords(jaas_section(_read(path), "Server") or {})
    if not users:
        raise CoordinationError(
            f'{path} has no users: expected a section Server {{ {_MODULE} required user_NAME="PASSWORD"; }};'
        )
    if is_readable_by_others(path):
        raise CoordinationError(f"{path} has passwords, and every user can read it: chmod 600 {path}")
    return users


def is_readable_by_others(path: Path) -> bool:
    return bool(path.stat().st_mode & stat.S_IROTH)


def ensure_file(path: Path) -> Path:
    """Create a JAAS file of mode 600 with a new user, for server and clients, unless it exists; return it."""
    if not path.exists():
        path.parent.mkdir(0o700, parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            password = secrets.token_urlsafe(_PASSWORD_BYTES)  # no character of it needs an escape
            file.write(
                f'Server {{\n    {_MODULE} required\n    user_{USER}="{password}";\n}};\n\n'
                f'Client {{\n    {_MODULE} required\n    username="{USER}"\n    password="{password}";\n}};\n'
            )
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    return path


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise CoordinationError(f"cannot read the JAAS file {path}: {why}") from error
