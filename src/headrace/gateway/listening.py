"""The listening socket of a gateway, and whether strangers could use it without an operator's consent.

This module imports nothing large: whoever holds the gateway's socket uses it before FastAPI is imported.
"""

import socket
from ipaddress import ip_address
from typing import Final

from headrace.system import ports
from headrace.system.addresses import reachable, written

BACKLOG: Final = 128
ALLOW_UNAUTHENTICATED: Final = "http.allow.unauthenticated"
ALLOW_PLAINTEXT: Final = "http.allow.plaintext"
_CONSENT: Final = (
    f"allow that with {ALLOW_UNAUTHENTICATED}=true (--set of `headrace up` and `headrace broker`, "
    "--allow-unauthenticated of `headrace gateway`)"
)


class Exposed(ValueError):
    """A gateway is not started because of who could use it; the message says what to do."""


def authenticates(security_protocol: str, *, allow_unauthenticated: bool) -> bool:
    """Return whether users authenticate, by SASL to the brokers, and not everyone is allowed."""
    return security_protocol.startswith("SASL") and not allow_unauthenticated


def check_exposure(
    host: str,
    security_protocol: str,
    *,
    tls: bool,
    allow_unauthenticated: bool = False,
    allow_plaintext: bool = False,
) -> None:
    """Raise Exposed if strangers could use the gateway, or read passwords, without an operator's consent."""
    if allow_unauthenticated:
        return
    if not authenticates(security_protocol, allow_unauthenticated=False):
        if security_protocol != "PLAINTEXT":
            raise Exposed(
                f"the gateway cannot authenticate users by security.protocol={security_protocol}, and "
                f"everyone would have its own rights: give it a listener with SASL, or {_CONSENT}"
            )
        if not is_loopback(host):
            raise Exposed(
                f"HTTP on {host} would be open to everyone who reaches it, without authentication: listen on "
                "127.0.0.1, let users authenticate with SASL (`headrace up --secure`, or --command-config of "
                f"`headrace gateway`), or {_CONSENT}"
            )
    elif not tls and not allow_plaintext and not is_loopback(host):
        raise Exposed(
            f"users would send their passwords to {host} over plain HTTP: set ssl.keystore.location in "
            f"--config for HTTPS, or, behind a proxy with TLS, {ALLOW_PLAINTEXT}=true"
        )


def is_loopback(host: str) -> bool:
    """Return whether only programs on this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def bound(host: str, port: int) -> socket.socket:
    """Return a listening socket, whose connections wait until a gateway serves them."""
    listening = ports.bound(host, port, shared=True)
    try:
        listening.listen(BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


def url_of(listening: socket.socket, *, tls: bool = False) -> str:
    """Return the URL of the socket for a browser on this machine."""
    host, port = listening.getsockname()[:2]
    return f"{'https' if tls else 'http'}://{written(reachable(host), port)}"
