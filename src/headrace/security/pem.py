"""PEM in settings and in files, and the errors of TLS settings and certificates."""

import os
import re
import sys
import tempfile
import textwrap
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

CERTIFICATE: Final = "CERTIFICATE"
PRIVATE_KEY: Final = "PRIVATE KEY"
MAX_FILE_BYTES: Final = 16 * 1024 * 1024  # the CA certificates of a system take a quarter of a megabyte
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_LINE: Final = 64


class InvalidTlsSetting(Exception):
    """A TLS setting is invalid, or its file unusable. The message says what to do; no password is in it."""

    def __init__(self, setting: str, why: str) -> None:
        super().__init__(f"{setting} {why}")
        self.setting, self.why = setting, why


class InvalidCertificate(Exception):
    """A certificate cannot be made or read; the message says why."""


@dataclass(frozen=True, slots=True)
class Source:
    """The value of a setting: PEM, or the path of a file if the setting's name ends in .location."""

    setting: str
    value: str = field(repr=False)  # may be a key

    @property
    def path(self) -> str | None:
        """The path of the file; None if the value itself is PEM."""
        return self.value if self.setting.endswith(".location") else None

    @property
    def is_directory(self) -> bool:
        return self.path is not None and Path(self.path).is_dir()

    def invalid(self, what: str) -> InvalidTlsSetting:
        """Return the error for a file that cannot be used: `what` says what it is."""
        return InvalidTlsSetting(self.setting, f"is {self.path}, {what}")

    def read(self) -> bytes:
        """Return the content; InvalidTlsSetting if the file cannot be read, is empty or is very large."""
        if self.path is None:
            return self.value.encode()
        try:
            with Path(self.path).open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            raise self.invalid("where there is no file") from None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise self.invalid(f"which cannot be read: {why}") from error
        if len(data) > MAX_FILE_BYTES:
            raise self.invalid(f"which is larger than {MAX_FILE_BYTES:,} bytes: is it a store?")
        return data

    def blocks_in(self, data: bytes, kind: str) -> str:
        """Return all PEM blocks of one kind in `data`, which was read from this source."""
        found = [
            _block(each[1], each[2])
            for each in _BLOCK.finditer(data.decode("utf-8", errors="replace"))
            if each[1] == kind or each[1].endswith(f" {kind}")
        ]
        if not found:
            raise InvalidTlsSetting(self.setting, f"holds no {kind.lower()} in PEM")
        return "".join(found)


def pem_of(kind: str, ders: Iterable[bytes]) -> str:
    """Return blocks of one kind with these contents."""
    return "".join(_block(kind, b64encode(der).decode()) for der in ders)


def _block(kind: str, body: str) -> str:
    """Return a block in lines, as OpenSSL expects it: a setting may have lost its line ends."""
    if ":" not in body:  # else it has headers, which are lines
        body = "\n" + "\n".join(textwrap.wrap("".join(body.split()), _LINE)) + "\n"
    return f"-----BEGIN {kind}-----{body}-----END {kind}-----\n"


@contextmanager
def as_file(text: str) -> Iterator[str]:
    """Yield the path of a file with `text`: OpenSSL reads keys from files only.

    On Linux the file is in memory; elsewhere only this user may open it.
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
