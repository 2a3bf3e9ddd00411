"""Hosts and ports as people write them, and where a server that listens everywhere is found."""

from ipaddress import ip_address


def reachable(host: str) -> str:
    """The loopback for a server that listens on every address of this machine, else `host` as it is.

    Of the same family: what listens on `::` may not hear who calls 127.0.0.1.
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


def written(host: str, port: int) -> str:
    """HOST:PORT, or [HOST]:PORT if the host has colons of its own."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
