"""Passwords that are generated, and files with secrets, which only their owner may read."""

import os
import secrets
import stat
from pathlib import Path
from typing import Final

PRIVATE: Final = 0o600
PRIVATE_DIRECTORY: Final = 0o700
PUBLIC: Final = 0o644
GENERATED_BYTES: Final = 24
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def generate_password() -> str:
    """Return a random password of letters, digits, - and _, which needs no quotes in any file."""
    return secrets.token_urlsafe(GENERATED_BYTES)


def write_private(path: Path, text: str, mode: int = PRIVATE) -> None:
    """Write a file that has `mode` from its first byte on; it replaces an older one at once."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), mode)  # whatever the umask is
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def make_private_directory(path: Path) -> None:
    """Create the directory for its owner alone; one that exists keeps its mode."""
    path.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)


def open_to_others(path: Path) -> bool:
    """Whether users besides the owner may access the file."""
    return bool(path.stat().st_mode & _OTHERS)
