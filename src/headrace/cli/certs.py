"""`headrace certs`: a development CA, and the certificates of brokers and clients."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from headrace.cli.support.lazy import LazyGroup
from headrace.cli.support.output import table
from headrace.cli.support.session import Command, Session, json_option
from headrace.security.certificate_directory import RENEW_BEFORE, CertificateDirectory
from headrace.security.certificates import AUTHORITY_DAYS, LEAF_DAYS, Facts, Usage, read_certificates
from headrace.security.pem import InvalidCertificate
from headrace.security.private_files import open_to_others

LONGEST_DAYS: Final = 36_500

_directory = click.option(
    "--dir",
    "directory",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    default="certs",
    callback=lambda _context, _parameter, path: CertificateDirectory(path),
    help="The directory of the CA and its certificates.",
)


def _days(default: int) -> Callable[[Command], Command]:
    valid = click.IntRange(1, LONGEST_DAYS)
    return click.option("--days", type=valid, default=default, help="How long it is valid.")


@click.group(cls=LazyGroup)
def certs() -> None:
    """Make, renew and show certificates for TLS.

    The CA is for development, and for teams without one; its key is in DIR/ca.key. Each DIR/NAME.pem has a
    key and its certificate, and is a keystore: ssl.keystore.type=PEM, ssl.keystore.location=DIR/NAME.pem.
    """


@certs.command()
@_directory
@click.option("--name", default="Headrace development CA", help="The name of the CA.")
@_days(AUTHORITY_DAYS)
@json_option
def init(session: Session, directory: CertificateDirectory, name: str, days: int) -> None:
    """Make a CA:  headrace certs init --dir certs"""
    made = directory.init(name, _now(), days)
    text = f"made the CA {directory.ca}; its key is {directory.ca_key}: keep it secret"
    session.show(_as_json(directory.ca, Facts.of(made.certificate)), text)


@certs.command()
@click.option(
    "--host",
    "hosts",
    metavar="HOST",
    multiple=True,
    help="A name or address by which clients connect, besides those of this machine; repeatable.",
)
@click.option("--name", default="server", help="The name in the certificate, and of its file.")
@_directory
@_days(LEAF_DAYS)
@json_option
def server(
    session: Session, hosts: Sequence[str], name: str, directory: CertificateDirectory, days: int
) -> None:
    """Make a certificate of a broker or gateway:  headrace certs server --host kafka.example.com

    It is also valid for localhost, 127.0.0.1, ::1 and the name of this machine. Brokers connect to each other
    with it: their principal is User:CN=NAME.
    """
    made = directory.issue(name, Usage.SERVER, _now(), hosts=tuple(hosts), days=days)
    facts, path = Facts.of(made.certificate), directory.file(name)
    text = f"made {path} for {', '.join(facts.hosts)}, valid until {facts.expires:%Y-%m-%d}"
    session.show(_as_json(path, facts), text)


@certs.command()
@click.option("--name", required=True, help="The user's name: the principal is User:CN=NAME.")
@_directory
@_days(LEAF_DAYS)
@json_option
def client(session: Session, name: str, directory: CertificateDirectory, days: int) -> None:
    """Make a certificate of a client:  headrace certs client --name alice"""
    made = directory.issue(name, Usage.CLIENT, _now(), days=days)
    facts, path = Facts.of(made.certificate), directory.file(name)
    text = f"made {path} for principal User:{facts.subject}, valid until {facts.expires:%Y-%m-%d}"
    session.show(_as_json(path, facts), text)


@certs.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--new-key", is_flag=True, help="Make a new key, too. By default the key stays the same.")
@_directory
@_days(LEAF_DAYS)
@json_option
def renew(
    session: Session, names: Sequence[str], directory: CertificateDirectory, days: int, *, new_key: bool
) -> None:
    """Renew certificates:  headrace certs renew broker-1

    Without NAME, those that expire within 30 days. Subject, hosts and usage stay the same. Brokers load the
    new file within seconds, and use it for new connections.
    """
    chosen = list(names) or directory.expiring(_now())
    renewed = []
    for name in chosen:
        issued = directory.renew(name, _now(), days=days, with_new_key=new_key)
        renewed.append(_as_json(directory.file(name), Facts.of(issued.certificate)))
    soon = f"no certificate in {directory.path} expires within {RENEW_BEFORE.days} days"
    lines = [f"renewed {made['file']}, valid until {made['expires'][:10]}" for made in renewed]
    session.show(renewed, "\n".join(lines) or soon)


@certs.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_directory
@json_option
def show(session: Session, files: Sequence[Path], directory: CertificateDirectory) -> None:
    """Show certificates and when they expire:  headrace certs show

    Of the directory, or of files in PEM.
    """
    shown = [(directory.path / f"{name}.pem", facts) for name, facts in directory.certificates()]
    if files:
        shown = []
        for path in files:
            try:
                shown.append((path, Facts.of(read_certificates(path.read_bytes())[0])))
            except InvalidCertificate as error:
                raise InvalidCertificate(f"{path}: {error}") from error
    if not shown:
        raise click.ClickException(f"{directory.path} has no certificates: `headrace certs init` makes a CA")
    rows = []
    for path, facts in shown:
        used_for = "CA" if facts.is_authority else ", ".join(facts.hosts) or "client"
        days = facts.days_left(_now())
        left = "expired" if days < 0 else f"{days} days"
        rows.append((path.name, facts.subject, used_for, f"{facts.expires:%Y-%m-%d}", left))
    columns = ["file", "subject", "for", "expires", "left"]
    session.show([_as_json(path, facts) for path, facts in shown], lambda: table(columns, rows))


def _as_json(path: Path, facts: Facts) -> dict[str, Any]:
    times = {"begins": facts.begins.isoformat(), "expires": facts.expires.isoformat()}
    return {"file": str(path), **asdict(facts), **times, "open_to_others": open_to_others(path)}


def _now() -> datetime:
    return datetime.now(UTC)
