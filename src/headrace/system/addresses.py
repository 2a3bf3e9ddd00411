"""Hosts and ports as text, and the address of a server that listens on all interfaces."""

from ipaddress import ip_address


def reachable(host: str) -> str:
    """Return the loopback address for a server that listens on all interfaces, otherwise `host`.

    The loopback address is of the same family: a server on `::` need not accept connections to 127.0.0.1.
    """
    if not host:
        return "127.0.0.1"
    try:
        address = ip_address(host)
    except ValueError:
        return host  # a name
    if not address.is_unspecified:
        return host
    return "127.0.0.1" if address.version == 4 else "::1"


def is_loopback(host: str) -> bool:
    """Return whether a server on `host` can be reached from this machine only; False for unknown names."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def written(host: str, port: int) -> str:
    """Return HOST:PORT, or [HOST]:PORT if the host is an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
