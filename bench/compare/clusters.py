"""How the two clusters are made: processes on loopback, with what their makers start them with.

Headrace is its coordinator and three brokers, with the settings of `headrace up --brokers 3`. Kafka is three
brokers that are their own controllers (KRaft, combined), with its default settings and JVM options.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from compare.cluster import Cluster, MakeCluster
from compare.node import Node
from compare.servers import HOST, START_TIMEOUT_S, free_port, java_server
from compat.kafka_tools.java import KafkaJava, find_kafka
from compat.kafka_tools.server import CLUSTER_ID, SINGLE_NODE
from headrace.client.wire.connection import Address

BROKERS: Final = (1, 2, 3)
PROGRAM: Final = str(Path(sys.executable).with_name("headrace"))
HEADRACE: Final = {  # what `headrace up --brokers 3` gives its brokers
    "zookeeper.session.timeout.ms": "6000",
    "group.initial.rebalance.delay.ms": "100",
    "offsets.topic.num.partitions": "10",
    "offsets.topic.replication.factor": "3",
}
KAFKA: Final = SINGLE_NODE | {
    "group.initial.rebalance.delay.ms": "100",
    "offsets.topic.num.partitions": "10",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "log.segment.delete.delay.ms": "1000",  # deleted topics leave the disk to the next line
}


def environment(root: Path) -> Mapping[str, str]:
    """Bytecode is kept, as it is by an installed package: the first start makes it, the others use it."""
    kept = os.environ | {"PYTHONPYCACHEPREFIX": str(root / "bytecode")}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return kept


def headrace(root: Path) -> MakeCluster:
    def make() -> Cluster:
        directory = Path(tempfile.mkdtemp(prefix="headrace-cluster-", dir=root))
        port = free_port()
        command = [PROGRAM, "coordinator", "--data", str(directory / "coordinator"), "--port", str(port)]
        coordinator = Node(command, directory / "coordinator.log", environment(root))
        addresses = {broker_id: Address(HOST, free_port()) for broker_id in BROKERS}
        nodes = {
            broker_id: _headrace_broker(root, directory, broker_id, address.port, f"{HOST}:{port}")
            for broker_id, address in addresses.items()
        }
        return Cluster("headrace", nodes, addresses, before=[coordinator])

    return make


def _headrace_broker(root: Path, directory: Path, broker_id: int, port: int, zookeeper: str) -> Node:
    settings = HEADRACE | {
        "broker.id": str(broker_id),
        "log.dirs": str(directory / f"broker-{broker_id}"),
        "listeners": f"PLAINTEXT://{HOST}:{port}",
        "zookeeper.connect": zookeeper,
    }
    command = [PROGRAM, "broker", *(f"--set={name}={value}" for name, value in settings.items())]
    return Node(command, directory / f"broker-{broker_id}.log", environment(root))


def kafka(root: Path) -> MakeCluster:
    java = find_kafka()

    def make() -> Cluster:
        directory = Path(tempfile.mkdtemp(prefix="kafka-cluster-", dir=root))
        addresses = {broker_id: Address(HOST, free_port()) for broker_id in BROKERS}
        controllers = {broker_id: free_port() for broker_id in BROKERS}
        voters = ",".join(f"{broker_id}@{HOST}:{port}" for broker_id, port in controllers.items())
        nodes = {
            broker_id: _kafka_broker(
                java,
                directory / f"broker-{broker_id}",
                {
                    "node.id": str(broker_id),
                    "listeners": f"PLAINTEXT://{HOST}:{address.port},"
                    f"CONTROLLER://{HOST}:{controllers[broker_id]}",
                    "controller.quorum.voters": voters,
                },
            )
            for broker_id, address in addresses.items()
        }
        return Cluster("kafka", nodes, addresses)

    return make


def _kafka_broker(java: KafkaJava, directory: Path, settings: Mapping[str, str]) -> Node:
    directory.mkdir()
    path = directory / "server.properties"
    every = {**KAFKA, **settings, "log.dirs": str(directory / "data")}
    path.write_text("".join(f"{name}={value}\n" for name, value in every.items()))
    options = ["--config", str(path), "--cluster-id", CLUSTER_ID]
    formatting = java.command("kafka.tools.StorageTool", "format", *options)
    subprocess.run(formatting, check=True, capture_output=True, timeout=START_TIMEOUT_S)
    return Node(java_server(java, path), directory / "server.log", os.environ)
