"""Clusters that the tasks of one worker process share, so that connections outlive a task.

Spark runs one task after the other in a Python worker. The plan of a task has the leader of its partitions.
When that leader fails, the task asks for Metadata: what an earlier task knew of leaders is not relied on.
"""

import os
from collections import OrderedDict
from typing import Final, NamedTuple

from headrace.client.wire.security import Security
from headrace.tables.reader.cluster import ClusterConnections

MAX_CLUSTERS: Final = 8


class ClusterKey(NamedTuple):
    """What the connections of two tasks must have in common if they are to share them: the user, too."""

    bootstrap: str
    security: Security
    client_id: str
    creates_topics: bool = False


class SharedClusters:
    """The clusters that were used last."""

    def __init__(self) -> None:
        self._clusters: OrderedDict[ClusterKey, ClusterConnections] = OrderedDict()

    def get(self, key: ClusterKey) -> ClusterConnections:
        """Return the cluster with open connections, or a new one. The caller does not close it."""
        found = self._clusters.pop(key, None)
        if found is None:
            found = ClusterConnections(
                key.bootstrap, key.security, creates_topics=key.creates_topics, client_id=key.client_id
            )
        self._clusters[key] = found
        while len(self._clusters) > MAX_CLUSTERS:
            _, oldest = self._clusters.popitem(last=False)
            oldest.close()
        return found

    def close(self) -> None:
        """Close all connections that are idle."""
        while self._clusters:
            _, cluster = self._clusters.popitem()
            cluster.close()


_shared: Final = SharedClusters()
# Two processes must not use one connection. The parent's sockets stay open when the child closes its copies.
os.register_at_fork(after_in_child=_shared.close)


def shared_cluster(
    bootstrap: str, security: Security, client_id: str, *, creates_topics: bool = False
) -> ClusterConnections:
    """Return the cluster that the tasks of this process share."""
    return _shared.get(ClusterKey(bootstrap, security, client_id, creates_topics))
