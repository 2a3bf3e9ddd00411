"""The socket of a gateway, apart from the gateway: who holds it need not import what serves it."""

import socket
from typing import Final

from headrace.addresses import reachable, written

BACKLOG: Final = 128


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens: connections wait in it until somebody serves them."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


def url_of(listening: socket.socket) -> str:
    """What people type into a browser on this machine."""
    host, port = listening.getsockname()[:2]
    return f"http://{written(reachable(host), port)}"
