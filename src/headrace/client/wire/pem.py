"""Certificates and keys in PEM: in a file, or in a setting itself, as Kafka's clients allow both."""

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import IO, Final

from headrace.client.errors import ClientError

CERTIFICATE: Final = "CERTIFICATE"
PRIVATE_KEY: Final = "PRIVATE KEY"
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_LINE: Final = 64


@dataclass(frozen=True, slots=True)
class Pem:
    """What a setting holds; if its name ends in .location, where that is."""

    setting: str
    value: str = field(repr=False)  # may be a key

    @property
    def is_directory(self) -> bool:
        return self.setting.endswith(".location") and Path(self.value).is_dir()

    def blocks(self, kind: str) -> str:
        """All that is of one kind, certificates or keys; ClientError if there is nothing of it."""
        found = [
            _block(each[1], each[2])
            for each in _BLOCK.finditer(self._text())
            if each[1] == kind or each[1].endswith(f" {kind}")
        ]
        if not found:
            raise ClientError(f"{self.setting} holds no {kind.lower()} in PEM")
        return "".join(found)

    def _text(self) -> str:
        if not self.setting.endswith(".location"):
            return self.value
        try:
            return Path(self.value).read_text("utf-8", errors="replace")
        except FileNotFoundError:
            raise ClientError(f"{self.setting} is {self.value}, where there is no file") from None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise ClientError(f"{self.setting} is {self.value}, which cannot be read: {why}") from error


def _block(kind: str, body: str) -> str:
    """In lines, as OpenSSL wants it: line ends do not survive every way that a setting may take."""
    if ":" not in body:  # else it has headers, which are lines
        body = "\n" + "\n".join(wrap("".join(body.split()), _LINE)) + "\n"
    return f"-----BEGIN {kind}-----{body}-----END {kind}-----\n"


@contextmanager
def as_file(text: str) -> Iterator[str]:
    """The path of a file that holds `text` while the block runs: OpenSSL reads keys from files only.

    It never reaches a disk where the system has files in memory; elsewhere nobody but us may open it.
    """
    file: IO[bytes]
    if sys.platform == "linux":
        file = os.fdopen(os.memfd_create("pem"), "wb")
        path = f"/proc/self/fd/{file.fileno()}"
    else:
        file = tempfile.NamedTemporaryFile()  # noqa: SIM115  closed below
        path = file.name
    with file:
        file.write(text.encode())
        file.flush()
        yield path
