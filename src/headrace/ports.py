"""Reserve ports for processes that will listen on them.

The kernel does not hand out the port of a bound socket as a free port, even if the socket does not listen,
but a process that asks for this very port gets it. So a broker that dies finds its port free when it is
restarted.

Two sockets share a port only if both have SO_REUSEADDR. A row of any free ports is bound without it, which
fails if another process has reserved one of them; the option is set afterwards.
"""

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from headrace.addresses import written

ATTEMPTS: Final = 100  # to find a row of free ports


class PortsTaken(Exception):
    """The ports cannot be reserved; the message says why."""


@contextmanager
def reserved(host: str, first: int, count: int) -> Iterator[list[int]]:
    """Reserve `count` ports in a row from `first` while the block runs, or any row if `first` is 0.

    Raise PortsTaken if a process listens on one of them.
    """
    with ExitStack() as stack:
        yield _any(stack, host, count) if first == 0 else _these(stack, host, range(first, first + count))


def _these(stack: ExitStack, host: str, ports: range) -> list[int]:
    if ports[-1] > 65535:
        raise PortsTaken(
            f"{len(ports)} ports from {ports[0]} on: the last one would be {ports[-1]}, the highest is 65535"
        )
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
    """Return a socket that is bound and does not listen; with `shared` it has SO_REUSEADDR."""
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
        return "the port is in use; stop the process that listens there, or choose another port"
    return error.strerror or str(error)
