"""Reserve ports for processes that will listen on them.

The kernel does not hand out the port of a bound socket as a free port, even if the socket does not listen,
but a process that asks for this very port gets it. So a broker that dies finds its port free when it is
restarted.

On Linux, two sockets share a port only if both have SO_REUSEADDR. A row of any free ports is bound without
it, which fails if another process has reserved one of them; the option is set afterwards. On macOS they never
share a port: there, ports are only found to be free, and another process may take one meanwhile.

A row of any free ports is taken from below the kernel's ephemeral ports. Among those, every outgoing
connection holds one for a minute after it was closed, so that a busy machine may have no free row left.
"""

import errno
import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from headrace.system.addresses import written

ATTEMPTS: Final = 100  # to find a row of free ports
LOWEST: Final = 10240  # of a row of any free ports: well-known servers listen below
EPHEMERAL_PORTS: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


class PortsTaken(Exception):
    """The ports cannot be reserved; the message says why."""


@contextmanager
def reserved(host: str, first: int, count: int) -> Iterator[list[int]]:
    """Reserve `count` ports in a row from `first` while the block runs, or any row if `first` is 0.

    Raise PortsTaken if a process listens on one of them.
    """
    with ExitStack() as stack:
        ports = _any(stack, host, count) if first == 0 else _these(stack, host, range(first, first + count))
        if not _can_share():
            stack.close()
        yield ports


@cache
def _can_share() -> bool:
    """Return whether a process may listen on a port that another one has bound."""
    with bound("127.0.0.1", 0, shared=True) as first:
        try:
            bound("127.0.0.1", first.getsockname()[1], shared=True).close()
        except OSError:
            return False
    return True


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
    for first in _candidates(count):
        with ExitStack() as found:
            try:
                kept = [found.enter_context(bound(host, first, shared=False))]
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


def _candidates(count: int) -> Iterator[int]:
    """Yield first ports to try: of rows below the ephemeral ports, then 0 for one that the kernel chooses."""
    end = _first_ephemeral_port() - count
    if count > 1 and end > LOWEST:
        for _ in range(ATTEMPTS):
            yield random.randrange(LOWEST, end)  # noqa: S311 (no secret)
    for _ in range(ATTEMPTS):
        yield 0


def _first_ephemeral_port() -> int:
    try:
        return int(EPHEMERAL_PORTS.read_text().split()[0])
    except OSError:  # not Linux
        return LOWEST


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
