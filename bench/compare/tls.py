"""Throughput and CPU time over TLS 1.3, with raw requests.

Only the throughput is expected to reach a ratio; the CPU time is printed without one.
"""

from collections.abc import Iterator

from compare import raw
from compare.secured import check_suite
from compare.servers import Server
from compare.table import Line
from compare.wire import KIB, MIB, make_batch


def warm_up(server: Server, seconds: float) -> None:
    check_suite(server.load)
    raw.warm_up(server, seconds)


def lines(seconds: float) -> Iterator[Line[Server]]:
    for size, bytes_, connections in (
        ("16 KiB", 16 * KIB, 1),
        ("16 KiB", 16 * KIB, 4),
        ("128 KiB", 128 * KIB, 1),
        ("1 MiB", MIB, 1),
    ):
        yield raw.produce_line(size, make_batch(bytes_), connections, 5, seconds, cpu=None, kind="tls")
        yield raw.fetch_line(size, make_batch(bytes_), connections, seconds, cpu=None, kind="tls")
