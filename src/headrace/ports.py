"""Ports kept for processes that are about to listen on them.

A socket that is bound and does not listen keeps its port from everybody that takes any free one, and lets a
process that asks for this very port have it: so brokers that die find their port free when they come back.

Two sockets share a port only if both have SO_REUSEADDR. Those in a row that nobody asked for by number are
bound without it, which fails where somebody else keeps one, and get it afterwards.
"""

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from headrace.addresses import written

ATTEMPTS: Final = 100  # to find as many free ports in a row


class PortsTaken(Exception):
    """There are no such ports to listen on; the sentence says why."""


@contextmanager
def reserved(host: str, first: int, count: int) -> Iterator[list[int]]:
    """`count` ports in a row from `first`, nobody else's while the block runs; 0: wherever there are so many.

    PortsTaken if something listens on one of them.
    """
    with ExitStack() as stack:
        yield _any(stack, host, count) if first == 0 else _these(stack, host, range(first, first + count))


def _these(stack: ExitStack, host: str, ports: range) -> list[int]:
    if ports[-1] > 65535:
        raise PortsTaken(f"{len(ports)} brokers from port {ports[0]} on: the last would have {ports[-1]}")
    for port in ports:
        try:
            stack.enter_context(bound(host, port, shared=True))
        except OSError as error:
            raise PortsTaken(f"cannot listen on {written(host, port)}: {_why(error)}") from error
    return list(ports)


def _any(stack: ExitStack, host: str, count: int) -> list[int]:
    for _ in range(ATTEMPTS):
        with ExitStack() as found:
            try:
                kept = [found.enter_context(bound(host, 0, shared=False))]
                lowest = kept[0].getsockname()[1]
                others = range(lowest + 1, min(lowest + count, 65536))
                kept += [found.enter_context(bound(host, port, shared=False)) for port in others]
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    continue
                raise PortsTaken(f"cannot listen on {host}: {_why(error)}") from error
            if lowest + count > 65536:
                continue
            for each in kept:
                _share(each)
            stack.push(found.pop_all())
            return list(range(lowest, lowest + count))
    raise PortsTaken(f"there are no {count} free ports in a row on {host}")


def bound(host: str, port: int, *, shared: bool) -> socket.socket:
    """A socket at that address, which does not listen; `shared` with others that say so."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    made = socket.socket(family, kind, protocol)
    try:
        if shared:
            _share(made)
        made.bind(address)
    except BaseException:
        made.close()
        raise
    return made


def _share(kept: socket.socket) -> None:
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


def _why(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "something listens there already; stop it, or choose another port"
    return error.strerror or str(error)
