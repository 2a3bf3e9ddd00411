"""A directory with a CA and the certificates that it has signed.

DIR/ca.pem     the certificate of the CA, for everybody
DIR/ca.key     the key of the CA
DIR/NAME.pem   the key and the certificate of NAME: a keystore in PEM, as Kafka's settings name it
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from headrace.security.certificates import (
    AUTHORITY_DAYS,
    LEAF_DAYS,
    Facts,
    Issued,
    Usage,
    issue,
    new_authority,
    read_certificates,
    renew,
    server_hosts,
)
from headrace.security.pem import InvalidCertificate
from headrace.security.private_files import PUBLIC, make_private_directory, write_private

RENEW_BEFORE: Final = timedelta(days=30)
_CA: Final = "ca"
_NOT_IN_FILE_NAMES: Final = frozenset("/\\\0")


class CertificateDirectory:
    """Files of a CA and of those that it has certified. Keys have mode 600."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ca = path / f"{_CA}.pem"
        self.ca_key = path / f"{_CA}.key"

    def file(self, name: str) -> Path:
        if name == _CA or name.startswith(".") or _NOT_IN_FILE_NAMES & set(name):
            raise InvalidCertificate(f"{name!r} cannot be the name of a certificate's file")
        return self.path / f"{name}.pem"

    def init(self, name: str, now: datetime, days: int = AUTHORITY_DAYS) -> Issued:
        """Make a CA; InvalidCertificate if there is one: what it has signed could not be trusted any more."""
        for path in (self.ca, self.ca_key):
            if path.exists():
                raise InvalidCertificate(f"{path} exists already: choose another directory, or delete it")
        made = new_authority(name, days, now)
        make_private_directory(self.path)
        write_private(self.ca_key, made.key_pem)
        write_private(self.ca, made.certificate_pem, PUBLIC)
        return made

    def authority(self) -> Issued:
        """Read the CA; InvalidCertificate if there is none."""
        if not self.ca.exists() or not self.ca_key.exists():
            raise InvalidCertificate(
                f"{self.path} has no CA: `headrace certs init --dir {self.path}` makes one"
            )
        return Issued.parse(self.ca.read_text(), self.ca_key.read_text())

    def issue(
        self, name: str, usage: Usage, now: datetime, *, hosts: tuple[str, ...] = (), days: int = LEAF_DAYS
    ) -> Issued:
        """Make a key and a certificate; InvalidCertificate if there are some of that name."""
        path = self.file(name)
        if path.exists():
            raise InvalidCertificate(
                f"{path} exists already: `headrace certs renew {name}` renews it, or choose another name"
            )
        names = server_hosts(hosts) if usage is Usage.SERVER else hosts
        return self._write(path, issue(self.authority(), name, usage, hosts=names, days=days, now=now))

    def renew(self, name: str, now: datetime, *, days: int = LEAF_DAYS, with_new_key: bool = False) -> Issued:
        """Replace a certificate by one for the same subject and hosts; brokers load it without a restart."""
        path = self.file(name)
        if not path.exists():
            raise InvalidCertificate(f"there is no {path}")
        text = path.read_text()
        made = renew(
            self.authority(), Issued.parse(text, text), days=days, now=now, with_new_key=with_new_key
        )
        return self._write(path, made)

    def ensure_server(self, name: str, hosts: tuple[str, ...], now: datetime) -> bool:
        """Make a certificate that is missing, expires soon or lacks a host; return whether it did."""
        path = self.file(name)
        if path.exists():
            facts = Facts.of(read_certificates(path.read_bytes())[0])
            if set(facts.hosts) >= set(server_hosts(hosts)):
                if facts.expires - now < RENEW_BEFORE:
                    self.renew(name, now)
                    return True
                return False
        made = issue(self.authority(), name, Usage.SERVER, hosts=server_hosts(hosts), days=LEAF_DAYS, now=now)
        self._write(path, made)
        return True

    def certificates(self) -> Iterator[tuple[str, Facts]]:
        """Yield the name and the facts of each certificate, the CA first, without files of another kind."""
        found = sorted(self.path.glob("*.pem"), key=lambda each: (each != self.ca, each.name))
        for path in found:
            try:
                yield path.stem, Facts.of(read_certificates(path.read_bytes())[0])
            except InvalidCertificate:
                continue

    def expiring(self, now: datetime, within: timedelta = RENEW_BEFORE) -> list[str]:
        """Return the names of certificates, besides that of the CA, that expire soon or have expired."""
        return [name for name, facts in self.certificates() if name != _CA and facts.expires - now < within]

    @staticmethod
    def _write(path: Path, made: Issued) -> Issued:
        write_private(path, made.key_pem + made.certificate_pem)
        return made
