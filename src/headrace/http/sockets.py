"""The socket of a gateway, apart from the gateway: who holds it need not import what serves it."""

import socket
from typing import Final

from headrace import ports
from headrace.addresses import reachable, written

BACKLOG: Final = 128


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens: connections wait in it until somebody serves them."""
    listening = ports.bound(host, port, shared=True)
    try:
        listening.listen(BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


def url_of(listening: socket.socket) -> str:
    """What people type into a browser on this machine."""
    host, port = listening.getsockname()[:2]
    return f"http://{written(reachable(host), port)}"
