"""A cluster for tests: real brokers with replicas and elections.

with Cluster(brokers=3, topics={"payments": 6}) as cluster:
    cluster.kill(cluster.leader_of("payments", 0))
    ...
    cluster.restart(1)
    cluster.wait_until_in_sync()
"""

from pathlib import Path
from typing import Final

from headrace.client.errors import NoSuchTopic
from headrace.client.wire.requests import metadata_request
from headrace.protocol.schema.metadata import MetadataResponse
from headrace.testing.brokers import RunningBrokers, Settings, Topics
from headrace.testing.client import FixtureClient, NotYet, topic_at, until

FAILOVER_S: Final = 30.0
ANSWER_S: Final = 1.0  # a broker that takes longer is paused


class Cluster(RunningBrokers):
    """Several brokers in one thread of this process; with `process`, each in a process of its own."""

    def __init__(
        self,
        brokers: int = 3,
        settings: Settings | None = None,
        *,
        topics: Topics | None = None,
        process: bool = False,
        data: Path | str | None = None,
        secure: bool = False,
    ) -> None:
        if brokers < 1:
            raise ValueError(f"brokers={brokers}: a cluster has at least one broker")
        super().__init__(brokers, settings, topics=topics, process=process, data=data, secure=secure)

    @property
    def brokers(self) -> list[int]:
        """The ids of the brokers that run."""
        return [broker_id for broker_id, node in self._nodes.items() if node.running]

    def bootstrap_of(self, broker_id: int) -> str:
        """Return the address of one broker."""
        return self._address(self._node(broker_id).broker_id)

    def stop_broker(self, broker_id: int) -> None:
        """Shut a broker down cleanly, as for an upgrade: it hands over leadership before it stops."""
        self._loop.run(self._node(broker_id).stop())

    def pid_of(self, broker_id: int) -> int:
        """Return the id of a broker's process."""
        return self._process_node(broker_id).pid

    def leader_of(self, topic: str, partition: int = 0, *, timeout_s: float = FAILOVER_S) -> int:
        """Return the leader of a partition; wait until a running broker leads it."""

        def leader() -> int:
            for each in topic_at(brokers, None, topic).partitions:
                if each.partition_index == partition:
                    if each.leader_id not in self.brokers:
                        raise NotYet(f"its leader, broker {each.leader_id}, is gone")
                    return int(each.leader_id)
            raise NoSuchTopic(f"{topic}-{partition}")

        with self._client_of(self.brokers).connected(ANSWER_S) as brokers:
            return until(f"a leader of {topic}-{partition}", leader, timeout_s)

    def wait_until_in_sync(self, *, timeout_s: float = FAILOVER_S) -> None:
        """Return when all running brokers are in the cluster, and every replica is in sync."""

        def check() -> None:
            for broker in self.brokers:
                _check(self._client_of([broker]), self.brokers)

        until("all replicas in sync", check, timeout_s)

    def _client_of(self, brokers: list[int]) -> FixtureClient:
        return FixtureClient(self.client.connection.at(",".join(map(self._address, brokers))))


def _check(client: FixtureClient, running: list[int]) -> None:
    """Raise NotYet unless a broker knows all running brokers, and sees all replicas in sync."""
    with client.connected(ANSWER_S) as brokers:
        seen: MetadataResponse = brokers.any(metadata_request(None))
    missing = set(running) - {broker.node_id for broker in seen.brokers}
    if missing:
        raise NotYet(f"broker {missing} has not joined")
    for topic in seen.topics:
        for each in topic.partitions:
            if each.leader_id < 0 or set(each.isr_nodes) != set(each.replica_nodes):
                raise NotYet(
                    f"{topic.name}-{each.partition_index} has {each.isr_nodes} of {each.replica_nodes}"
                )
