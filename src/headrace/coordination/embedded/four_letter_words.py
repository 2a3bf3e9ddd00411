"""ZooKeeper's four-letter words: a client sends `ruok` instead of opening a session, and reads text."""

import platform
import sys
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, NamedTuple

from headrace import __version__

ZOOKEEPER_VERSION: Final = "3.9.5"
"""The version of ZooKeeper's protocol; clients use it to find out which requests are supported."""

FULL_VERSION: Final = f"{ZOOKEEPER_VERSION}-headrace-{__version__}"
MAX_LISTED: Final = 100
"""Connections shown by `stat` and `cons`; the rest are counted."""


class Peer(NamedTuple):
    """One connection."""

    address: str
    port: int
    session_id: int
    received: int
    sent: int
    watches: int


class Figures(NamedTuple):
    """The metrics of a running coordinator."""

    received: int
    sent: int
    outstanding: int
    zxid: int
    nodes: int
    watches: int
    ephemerals: int
    data_bytes: int
    sessions: int
    batches: int
    entries: int
    conf: dict[str, object]
    peers: list[Peer]


Ask = Callable[[], Figures]
"""Collects the figures: some frequent words do not need them."""


def ruok(_ask: Ask) -> str:
    return "imok"


def isro(_ask: Ask) -> str:
    return "rw"


def srvr(ask: Ask) -> str:
    return f"Zookeeper version: {FULL_VERSION}\n{_summary(ask())}"


def stat(ask: Ask) -> str:
    figures = ask()
    return f"Zookeeper version: {FULL_VERSION}\nClients:\n{_peers(figures.peers)}\n{_summary(figures)}"


def cons(ask: Ask) -> str:
    return f"{_peers(ask().peers)}\n"


def conf(ask: Ask) -> str:
    return _lines(ask().conf.items(), "=")


def envi(_ask: Ask) -> str:
    facts = {
        "zookeeper.version": FULL_VERSION,
        "host.name": platform.node(),
        "python.version": platform.python_version(),
        "python.implementation": sys.implementation.name,
        "os.name": platform.system(),
        "os.arch": platform.machine(),
        "os.version": platform.release(),
    }
    return "Environment:\n" + _lines(facts.items(), "=")


def mntr(ask: Ask) -> str:
    figures = ask()
    facts = {
        "version": FULL_VERSION,
        "server_state": "standalone",
        "packets_received": figures.received,
        "packets_sent": figures.sent,
        "num_alive_connections": len(figures.peers),
        "outstanding_requests": figures.outstanding,
        "znode_count": figures.nodes,
        "watch_count": figures.watches,
        "ephemerals_count": figures.ephemerals,
        "approximate_data_size": figures.data_bytes,
        "global_sessions": figures.sessions,
        "fsync_count": figures.batches,
        "committed_transactions": figures.entries,
    }
    return _lines(((f"zk_{name}", value) for name, value in facts.items()), "\t")


WORDS: Final[dict[bytes, Callable[[Ask], str]]] = {
    b"ruok": ruok,
    b"isro": isro,
    b"srvr": srvr,
    b"stat": stat,
    b"cons": cons,
    b"conf": conf,
    b"envi": envi,
    b"mntr": mntr,
}


def _summary(figures: Figures) -> str:
    facts = {
        "Received": figures.received,
        "Sent": figures.sent,
        "Connections": len(figures.peers),
        "Outstanding": figures.outstanding,
        "Zxid": hex(figures.zxid),
        "Mode": "standalone",
        "Node count": figures.nodes,
    }
    return _lines(facts.items(), ": ")


def _peers(peers: list[Peer]) -> str:
    listed = "".join(
        f" /{peer.address}:{peer.port}[1](sid=0x{peer.session_id:x},recved={peer.received},sent={peer.sent},"
        f"watches={peer.watches})\n"
        for peer in islice(peers, MAX_LISTED)
    )
    return listed + (f" and {len(peers) - MAX_LISTED} more\n" if len(peers) > MAX_LISTED else "")


def _lines(facts: Iterable[tuple[str, object]], separator: str) -> str:
    return "".join(f"{name}{separator}{value}\n" for name, value in facts)
