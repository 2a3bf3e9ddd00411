"""ZooKeeper's four-letter words: a client sends `ruok` instead of opening a session, and reads text.

`envi` only has the version, by which kazoo finds out which requests are supported.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from headrace import __version__

if TYPE_CHECKING:
    from headrace.coordination.embedded.server import Coordinator

FULL_VERSION: Final = f"3.9.5-headrace-{__version__}"
"""The version of ZooKeeper's protocol, and ours."""

SRVR: Final = b"srvr"
"""The only word that is answered off loopback, as by ZooKeeper's default of 4lw.commands.whitelist."""


def _srvr(server: "Coordinator") -> str:
    facts = {
        "Zookeeper version": FULL_VERSION,
        "Received": server.received,
        "Sent": server.sent,
        "Connections": len(server.connections),
        "Outstanding": server.commit.waiting,
        "Zxid": hex(server.service.state.zxid),
        "Mode": "standalone",
        "Node count": len(server.service.state.tree.nodes),
    }
    return _lines(facts, ": ")


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
    SRVR: _srvr,
    b"mntr": _mntr,
    b"envi": lambda _server: f"Environment:\nzookeeper.version={FULL_VERSION}\n",
}


def _lines(facts: Mapping[str, object], separator: str) -> str:
    return "".join(f"{name}{separator}{value}\n" for name, value in facts.items())
