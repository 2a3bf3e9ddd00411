"""ZooKeeper's four-letter words: a client sends `ruok` instead of opening a session, and reads text."""

import platform
import sys
from collections.abc import Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final

from headrace import __version__

if TYPE_CHECKING:
    from headrace.coordination.embedded.server import Coordinator

ZOOKEEPER_VERSION: Final = "3.9.5"
"""The version of ZooKeeper's protocol; clients use it to find out which requests are supported."""

FULL_VERSION: Final = f"{ZOOKEEPER_VERSION}-headrace-{__version__}"
DEFAULT_WHITELIST: Final = frozenset({b"srvr"})
"""The words that are answered off loopback: ZooKeeper's default of 4lw.commands.whitelist."""

MAX_LISTED: Final = 100
"""Connections shown by `stat` and `cons`; the rest are counted."""


def _srvr(server: "Coordinator") -> str:
    return f"Zookeeper version: {FULL_VERSION}\n{_summary(server)}"


def _stat(server: "Coordinator") -> str:
    return f"Zookeeper version: {FULL_VERSION}\nClients:\n{_peers(server)}\n{_summary(server)}"


def _conf(server: "Coordinator") -> str:
    facts = {
        "clientPort": server.port,
        "clientPortAddress": server.host,
        "dataDir": server.data_dir,
        "tickTime": server.tick_ms,
        "maxClientCnxns": server.max_connections,
        "minSessionTimeout": 2 * server.tick_ms,
        "maxSessionTimeout": 20 * server.tick_ms,
        "serverId": 0,
    }
    return _lines(facts, "=")


def _envi(_server: "Coordinator") -> str:
    facts = {
        "zookeeper.version": FULL_VERSION,
        "host.name": platform.node(),
        "python.version": platform.python_version(),
        "python.implementation": sys.implementation.name,
        "os.name": platform.system(),
        "os.arch": platform.machine(),
        "os.version": platform.release(),
    }
    return "Environment:\n" + _lines(facts, "=")


def _mntr(server: "Coordinator") -> str:
    state = server.service.state
    facts = {
        "zk_version": FULL_VERSION,
        "zk_server_state": "standalone",
        "zk_packets_received": server.received,
        "zk_packets_sent": server.sent,
        "zk_num_alive_connections": len(server.connections),
        "zk_outstanding_requests": server.commit.waiting,
        "zk_znode_count": len(state.tree.nodes),
        "zk_watch_count": len(server.service.watches),
        "zk_ephemerals_count": state.tree.ephemeral_count(),
        "zk_approximate_data_size": state.tree.data_bytes,
        "zk_global_sessions": len(state.sessions),
        "zk_failed_authentications": server.authentication.failures,
        "zk_fsync_count": server.commit.batches,
        "zk_committed_transactions": server.commit.entries,
    }
    return _lines(facts, "\t")


WORDS: Final[dict[bytes, Callable[["Coordinator"], str]]] = {
    b"ruok": lambda _server: "imok",
    b"isro": lambda _server: "rw",
    b"srvr": _srvr,
    b"stat": _stat,
    b"cons": lambda server: f"{_peers(server)}\n",
    b"conf": _conf,
    b"envi": _envi,
    b"mntr": _mntr,
}


def not_whitelisted(word: bytes) -> str:
    """Return what ZooKeeper answers to a word that is not in 4lw.commands.whitelist."""
    return f"{word.decode()} is not executed because it is not in the whitelist.\n"


def parse_whitelist(names: str) -> frozenset[bytes]:
    """Return the words in a value of 4lw.commands.whitelist: names with commas between them, or `*`."""
    named = {name.strip().encode() for name in names.split(",")}
    return frozenset(WORDS) if b"*" in named else frozenset(named & WORDS.keys())


def _summary(server: "Coordinator") -> str:
    facts = {
        "Received": server.received,
        "Sent": server.sent,
        "Connections": len(server.connections),
        "Outstanding": server.commit.waiting,
        "Zxid": hex(server.service.state.zxid),
        "Mode": "standalone",
        "Node count": len(server.service.state.tree.nodes),
    }
    return _lines(facts, ": ")


def _peers(server: "Coordinator") -> str:
    listed = "".join(
        f" /{peer.address}:{peer.port}[1](sid=0x{peer.requester.session_id:x},recved={peer.received},"
        f"sent={peer.sent},watches={server.service.watches.count(peer)})\n"
        for peer in islice(server.connections, MAX_LISTED)
    )
    more = len(server.connections) - MAX_LISTED
    return listed + (f" and {more} more\n" if more > 0 else "")


def _lines(facts: Mapping[str, object], separator: str) -> str:
    return "".join(f"{name}{separator}{value}\n" for name, value in facts.items())
