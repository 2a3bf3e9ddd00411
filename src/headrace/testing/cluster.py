"""A cluster for tests: real brokers with replicas, elections and whatever may happen to them.

with Cluster(brokers=3, topics={"payments": 6}) as cluster:
    cluster.kill(cluster.leader_of("payments", 0))
    ...
    cluster.restart(1)
    cluster.wait_until_in_sync()
"""

import signal
from pathlib import Path
from typing import Final

from headrace.client.errors import NoSuchTopic
from headrace.client.wire.requests import metadata_request
from headrace.protocol.schema.metadata import MetadataResponse
from headrace.testing.asking import Asking
from headrace.testing.reading import NotNow, topic_at, until
from headrace.testing.served import Served, Topics
from headrace.testing.settings import Settings

FAILOVER_S: Final = 30.0
ANSWER_S: Final = 1.0  # who takes longer, is paused


class Cluster(Served):
    """Several brokers, all in one thread of this process; with `process`, each a process beside it."""

    def __init__(
        self,
        brokers: int = 3,
        settings: Settings | None = None,
        *,
        topics: Topics | None = None,
        process: bool = False,
        data: Path | str | None = None,
    ) -> None:
        if brokers < 1:
            raise ValueError(f"brokers={brokers}: a cluster has at least one")
        super().__init__(brokers, settings, topics=topics, process=process, data=data)

    @property
    def brokers(self) -> list[int]:
        """The ids of the brokers that run."""
        return [broker_id for broker_id, node in self._nodes.items() if node.running]

    def bootstrap_of(self, broker_id: int) -> str:
        """The address of one broker."""
        return self._address(self._node(broker_id).broker_id)

    def kill(self, broker_id: int) -> None:
        """End a broker as a crash would, with SIGKILL if it is a process; `restart` brings it back."""
        self._loop.run(self._node(broker_id).kill())

    def stop_broker(self, broker_id: int) -> None:
        """Have a broker leave in order, as for an upgrade: others lead before it goes."""
        self._loop.run(self._node(broker_id).stop())

    def restart(self, broker_id: int) -> None:
        """Start it again, with its port and its data; stop it first, in order, if it runs."""
        self._restart(broker_id)

    def pause(self, broker_id: int) -> None:
        """Have a broker's process stand still (SIGSTOP): connected, and silent."""
        self._beside(broker_id).signal(signal.SIGSTOP)

    def resume(self, broker_id: int) -> None:
        """Have it go on."""
        self._beside(broker_id).signal(signal.SIGCONT)

    def pid_of(self, broker_id: int) -> int:
        """The number of a broker's process."""
        return self._beside(broker_id).pid

    def leader_of(self, topic: str, partition: int = 0, *, timeout_s: float = FAILOVER_S) -> int:
        """The broker that leads; waits until a running one does."""

        def leader() -> int:
            for each in topic_at(brokers, None, topic).partitions:
                if each.partition_index == partition:
                    if each.leader_id not in self.brokers:
                        raise NotNow(f"broker {each.leader_id}, which led it, is gone")
                    return int(each.leader_id)
            raise NoSuchTopic(f"{topic}-{partition}")

        with Asking(self._bootstrap_now()).connected(ANSWER_S) as brokers:
            return until(f"a leader of {topic}-{partition}", leader, timeout_s)

    def wait_until_in_sync(self, *, timeout_s: float = FAILOVER_S) -> None:
        """Return when all that run are in the cluster, and every replica is in sync and has a leader."""

        def look() -> None:
            for each in self.brokers:
                _check(Asking(self._address(each)), self.brokers)

        until("all replicas in sync", look, timeout_s)

    def _bootstrap_now(self) -> str:
        return ",".join(map(self._address, self.brokers))


def _check(asking: Asking, running: list[int]) -> None:
    """NotNow unless the broker that is asked knows of all, and of nothing out of sync."""
    with asking.connected(ANSWER_S) as brokers:
        seen: MetadataResponse = brokers.any(metadata_request(None))
    missing = set(running) - {each.node_id for each in seen.brokers}
    if missing:
        raise NotNow(f"broker {missing} has not joined")
    for topic in seen.topics:
        for each in topic.partitions:
            if each.leader_id < 0 or set(each.isr_nodes) != set(each.replica_nodes):
                raise NotNow(
                    f"{topic.name}-{each.partition_index} has {each.isr_nodes} of {each.replica_nodes}"
                )
