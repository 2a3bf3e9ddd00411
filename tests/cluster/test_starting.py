"""A broker that is stopped while it starts, for longer than its session lasts, and goes on."""

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from cluster.brokers import BrokerProcess
from cluster.cluster import SETTINGS
from cluster.coordinators import Embedded
from cluster.waiting import until
from wire.confluent import make_topic

POINTS: Final[dict[str, Callable[[BrokerProcess, Callable[[str], int]], bool]]] = {
    "its session is open": lambda _broker, count: count("zk_global_sessions") > 0,
    "its logs are open": lambda broker, _count: (broker.log_dir / "meta.properties").exists(),
    "it is registered": lambda _broker, count: count("zk_ephemerals_count") > 0,
}


def counter(coordinator: Embedded) -> Callable[[str], int]:
    """A function that returns a figure of the coordinator."""
    host, _, port = coordinator.address.rpartition(":")

    def count(name: str) -> int:
        with socket.create_connection((host, int(port))) as connection, connection.makefile("rwb") as stream:
            stream.write(b"mntr")
            stream.flush()
            return int(dict(line.split(b"\t") for line in stream.read().splitlines())[name.encode()])

    return count


@pytest.mark.parametrize("point", POINTS)
def test_a_broker_that_is_stopped_while_it_starts_gets_a_new_session(tmp_path: Path, point: str) -> None:
    with Embedded(tmp_path) as coordinator, ThreadPoolExecutor(1) as pool:
        count = counter(coordinator)
        broker = BrokerProcess(1, tmp_path, coordinator.address, SETTINGS)
        started = pool.submit(broker.start)
        try:
            while not POINTS[point](broker, count):
                assert not started.done(), started.result()
            broker.pause()
            until("its session has expired", lambda: count("zk_global_sessions") == 0)
            broker.resume()
            started.result()
            make_topic(broker.bootstrap, "orders")
        finally:
            broker.kill()
