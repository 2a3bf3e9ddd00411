"""Findings about security: what is open to strangers, and certificates that expire. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Final

from headrace.client.doctor.diagnosis import Area, Finding, some

LISTENERS: Final = "listeners"
PROTOCOLS: Final = "listener.security.protocol.map"
AUTHORIZER: Final = "authorizer.class.name"
ALLOW_EVERYONE: Final = "allow.everyone.if.no.acl.found"
HTTP: Final = "http.listener"
HTTP_OPEN: Final = "http.allow.unauthenticated"
SETTINGS: Final = (LISTENERS, PROTOCOLS, AUTHORIZER, ALLOW_EVERYONE, HTTP, HTTP_OPEN)
"""The settings of brokers that say who may enter."""

SOON: Final = timedelta(days=30)
_OPEN: Final = "PLAINTEXT"
_UNENCRYPTED: Final = {_OPEN, "SASL_PLAINTEXT"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityFacts:
    """What brokers say of their security."""

    settings: Mapping[int, Mapping[str, str]] = field(default_factory=dict)  # by broker
    certificates: Mapping[str, datetime] = field(default_factory=dict)  # their ends, by address


def examine(area: Area, facts: SecurityFacts, now: datetime) -> Iterator[Finding]:
    exposed = {
        f"{name} of broker {broker_id}": protocol
        for broker_id, settings in sorted(facts.settings.items())
        for name, protocol in _exposed(settings)
    }
    yield from _listeners(area, exposed)
    yield from _authorizers(area, facts.settings, is_exposed=bool(exposed))
    open_ = [
        settings[HTTP]
        for settings in facts.settings.values()
        if settings.get(HTTP)
        and settings.get(HTTP_OPEN) == "true"
        and not is_loopback(settings[HTTP].rpartition(":")[0])
    ]
    if open_:
        yield area.warning(
            "http access",
            f"{some(open_)} serves everybody who reaches it ({HTTP_OPEN}=true).",
            "Give the gateway users: see http.client.config in docs/security.md.",
        )
    yield from _certificates(area, facts.certificates, now)


def _exposed(settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the listeners that other machines can reach, with their security protocols."""
    pairs = (each.partition(":") for each in settings.get(PROTOCOLS, "").split(",") if each)
    protocols = {name.strip(): protocol.strip() for name, _, protocol in pairs}
    for text in filter(None, settings.get(LISTENERS, "").split(",")):
        name, _, address = text.strip().partition("://")
        if not is_loopback(address.rpartition(":")[0]):
            yield name, protocols.get(name, name)


def is_loopback(host: str) -> bool:
    """Return whether only programs on the same machine can connect to a listener on `host`."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _listeners(area: Area, exposed: Mapping[str, str]) -> Iterator[Finding]:
    anonymous = [name for name, protocol in exposed.items() if protocol == _OPEN]
    unencrypted = [name for name, protocol in exposed.items() if protocol in _UNENCRYPTED]
    if anonymous:
        yield area.warning(
            "listeners",
            f"{some(anonymous)}: everybody who reaches the address may connect, without a password.",
            "Use SASL_SSL, or SSL with ssl.client.auth=required; `headrace up --secure` shows how.",
        )
    elif unencrypted:
        yield area.warning(
            "listeners",
            f"{some(unencrypted)}: records, and the passwords of PLAIN, can be read on the network.",
            "Use SASL_SSL.",
        )
    elif exposed:
        yield area.ok("listeners", f"{len(exposed)} that other machines can reach encrypt and authenticate.")


def _authorizers(
    area: Area, settings: Mapping[int, Mapping[str, str]], *, is_exposed: bool
) -> Iterator[Finding]:
    without = [broker_id for broker_id, each in sorted(settings.items()) if not each.get(AUTHORIZER)]
    lax = [broker_id for broker_id, each in sorted(settings.items()) if each.get(ALLOW_EVERYONE) == "true"]
    if without and (is_exposed or len(without) < len(settings)):
        yield area.warning(
            "acls",
            f"Broker {some(without)} has no authorizer: whoever may connect may do everything.",
            "Set authorizer.class.name and super.users on every broker.",
        )
    elif not without and lax:
        yield area.warning(
            "acls",
            f"Broker {some(lax)} allows everybody what no ACL is about ({ALLOW_EVERYONE}=true).",
            f"Create ACLs with `headrace acl allow`, then set {ALLOW_EVERYONE}=false.",
        )
    elif settings and not without:
        yield area.ok("acls", "All brokers deny what no ACL allows.")


def _certificates(area: Area, certificates: Mapping[str, datetime], now: datetime) -> Iterator[Finding]:
    if not certificates:
        return
    first = min(certificates.values())
    ending = [address for address, end in sorted(certificates.items()) if end <= now + SOON]
    yield area.graded(
        "certificates",
        f"The first one{f', of {some(ending)},' if ending else ''} expires on {first:%Y-%m-%d}.",
        "Replace the keystore's file, for example with `headrace certs renew`: brokers load it themselves.",
        problem=first <= now,
        warning=bool(ending),
    )
