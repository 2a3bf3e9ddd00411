"""The listening socket of a gateway, apart from the server so that its owner need not import FastAPI."""

import socket
from typing import Final

from headrace.system import ports
from headrace.system.addresses import reachable, written

BACKLOG: Final = 128


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
