"""Ports kept for processes that are about to listen on them.

A socket that is bound and does not listen keeps its port from everybody that takes any free one, and lets a
process that asks for this very port have it: so brokers that die find their port free when they come back.
"""

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from headrace.addresses import written
from headrace.cli.process import Refused

ATTEMPTS: Final = 100  # to find as many free ports in a row


@contextmanager
def reserved(host: str, first: int, count: int) -> Iterator[list[int]]:
    """`count` ports in a row from `first`, nobody else's while the block runs; 0: wherever there are so many.

    Refused if something listens on one of them.
    """
    with ExitStack() as stack:
        yield _any(stack, host, count) if first == 0 else _these(stack, host, range(first, first + count))


def _these(stack: ExitStack, host: str, ports: range) -> list[int]:
    if ports[-1] > 65535:
        raise Refused(f"{len(ports)} brokers from port {ports[0]} on: the last would have {ports[-1]}")
    for port in ports:
        try:
            stack.enter_context(_bound(host, port))
        except OSError as error:
            raise Refused(f"cannot listen on {written(host, port)}: {_why(error)}") from error
    return list(ports)


def _any(stack: ExitStack, host: str, count: int) -> list[int]:
    for _ in range(ATTEMPTS):
        with ExitStack() as found:
            try:
                lowest = found.enter_context(_bound(host, 0)).getsockname()[1]
                for port in range(lowest + 1, min(lowest + count, 65536)):
                    found.enter_context(_bound(host, port))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    continue
                raise Refused(f"cannot listen on {host}: {_why(error)}") from error
            if lowest + count > 65536:
                continue
            stack.push(found.pop_all())
            return list(range(lowest, lowest + count))
    raise Refused(f"there are no {count} free ports in a row on {host}")


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # both have to want this
        bound.bind(address)
    except BaseException:
        bound.close()
        raise
    return bound


def _why(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "something listens there already; stop it, or choose another port"
    return error.strerror or str(error)
