"""Three brokers for other people's programs: Headrace's, or Apache Kafka's for a comparison.

TRANSACTIONS_ON=kafka make transactions-long    runs the same tests on Apache Kafka
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from headrace.testing.cluster import Cluster

ON_KAFKA: Final = os.environ.get("TRANSACTIONS_ON", "headrace") == "kafka"
BROKERS: Final = (1, 2, 3)
SETTINGS: Final = {
    "min.insync.replicas": 2,
    "offsets.topic.num.partitions": 10,
    "transaction.state.log.num.partitions": 10,
    "auto.create.topics.enable": False,  # programs create their topics, or wait for them
}


class Brokers(Protocol):
    """Brokers 1, 2 and 3, each in a process of its own."""

    @property
    def bootstrap(self) -> str: ...

    def create_topic(self, name: str, *, partitions: int) -> None:
        """Create a topic with three replicas."""

    def kill(self, broker_id: int) -> None:
        """End a broker with SIGKILL."""

    def restart(self, broker_id: int) -> None:
        """Start a broker again that was killed, with its port and its data."""


@contextmanager
def running_brokers(root: Path) -> Iterator[Brokers]:
    """Start three brokers with their data in `root`; they end with the block."""
    if ON_KAFKA:
        from transactions.kafka_brokers import kafka_brokers  # noqa: PLC0415  needs bench/ on the path

        with kafka_brokers(root) as kafka:
            yield kafka
    else:
        with Cluster(len(BROKERS), SETTINGS, process=True, data=root / "brokers") as headrace:
            yield headrace
