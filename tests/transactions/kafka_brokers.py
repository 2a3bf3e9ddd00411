"""Three brokers of Apache Kafka, started as `make compare` starts them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compare.cluster import Cluster
from compare.clusters import kafka


class KafkaBrokers:
    """Brokers 1, 2 and 3 with the names that Headrace's cluster has for what happens to them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.bootstrap = cluster.bootstrap

    def create_topic(self, name: str, *, partitions: int) -> None:
        self._cluster.create_topic(name, partitions=partitions)

    def kill(self, broker_id: int) -> None:
        self._cluster.kill(broker_id)

    def restart(self, broker_id: int) -> None:
        self._cluster.start(broker_id)


@contextmanager
def kafka_brokers(root: Path) -> Iterator[KafkaBrokers]:
    with kafka(root)() as cluster:
        yield KafkaBrokers(cluster)
