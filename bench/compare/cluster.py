"""Three brokers as a contender: topics of three replicas, two of which must be in sync for acks=all."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka.admin import AdminClient, NewTopic

from compare.cluster_wire import Spread, controller_of, knows_brokers, spread_of
from compare.node import Node
from compare.wire import leaders_answer
from compat.kafka_tools.server import client_settings
from headrace.client.wire.connection import Address

START_TIMEOUT_S: Final = 90
HEAL_TIMEOUT_S: Final = 120
REPLICAS: Final = 3
TOPIC_SETTINGS: Final = {"min.insync.replicas": "2"}


class Cluster:
    """Brokers that run. `before` are processes that they need, and are started first."""

    def __init__(
        self,
        name: str,
        nodes: Mapping[int, Node],
        addresses: Mapping[int, Address],
        before: Sequence[Node] = (),
    ) -> None:
        self.name: Final = name
        self.addresses: Final = addresses
        self.bootstrap: Final = ",".join(f"{host}:{port}" for host, port in addresses.values())
        self.seconds_to_metadata = 0.0
        self._nodes = nodes
        self._before = before
        self._admin: Any = None

    def __enter__(self) -> Self:
        try:
            for node in self._before:
                node.start()
                node.wait_until_it_says("ready")
            started = time.perf_counter()
            for node in self._nodes.values():
                node.start()
            self.await_brokers()
            self.seconds_to_metadata = time.perf_counter() - started
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        for node in (*self._nodes.values(), *reversed(self._before)):
            node.stop()

    # -- brokers that come and go --------------------------------------------------------------

    def kill(self, broker_id: int) -> None:
        self._nodes[broker_id].kill()

    def start(self, broker_id: int) -> None:
        self._nodes[broker_id].start()
        self.await_brokers()

    def await_brokers(self) -> None:
        """Return when every broker answers Metadata and knows all of them."""
        for broker_id in self._nodes:
            all_known = partial(knows_brokers, self.addresses[broker_id], len(self._nodes))
            self._until(f"broker {broker_id} knows its cluster", all_known, START_TIMEOUT_S)

    def controller(self) -> int:
        return controller_of(self._any_address())

    # -- topics --------------------------------------------------------------------------------

    def create_topic(self, name: str, *, partitions: int = 1) -> None:
        """Return when its leaders answer and all replicas are in sync."""
        topic = NewTopic(
            name, num_partitions=partitions, replication_factor=REPLICAS, config=dict(TOPIC_SETTINGS)
        )
        self._client().create_topics([topic])[name].result(timeout=30)
        self.await_in_sync(name, partitions)

    def delete_topic(self, name: str) -> None:
        self._client().delete_topics([name])[name].result(timeout=30)

    def spread(self, topic: str) -> Spread:
        """Who leads its partitions, as some broker that runs knows it."""
        return spread_of(self._any_address(), topic)

    def await_in_sync(self, topic: str, partitions: int) -> None:
        """Return when all brokers agree who leads, all replicas are in sync, and the leaders know it."""

        def settled() -> bool:
            seen = [spread_of(address, topic) for address in self.addresses.values()]
            first = seen[0]
            whole = len(first.leaders) == partitions and all(each == REPLICAS for each in first.in_sync)
            return whole and all(each == first for each in seen) and self._leaders_answer(topic, first)

        self._until(f"all replicas of {topic} are in sync", settled, HEAL_TIMEOUT_S)

    def _leaders_answer(self, topic: str, spread: Spread) -> bool:
        return all(
            leaders_answer(self.addresses[leader], topic, spread.led_by(leader))
            for leader in set(spread.leaders)
        )

    # -- what it costs -------------------------------------------------------------------------

    def cpu_seconds(self) -> float:
        return sum(node.cpu_seconds() for node in (*self._nodes.values(), *self._before))

    def resident_bytes(self) -> int:
        return sum(node.resident_bytes() for node in (*self._nodes.values(), *self._before))

    def _any_address(self) -> Address:
        return next(self.addresses[broker_id] for broker_id, node in self._nodes.items() if node.runs)

    def _client(self) -> Any:
        if self._admin is None:
            self._admin = AdminClient(client_settings(self.bootstrap))
        return self._admin

    def _until(self, what: str, holds: Callable[[], bool], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not holds():
            self._ensure_all_run()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name}: waited in vain until {what}")
            time.sleep(0.01)

    def _ensure_all_run(self) -> None:
        for broker_id, node in self._nodes.items():
            if not node.runs:
                raise ChildProcessError(f"{self.name}: broker {broker_id} ended:\n{node.last_words()}")


MakeCluster = Callable[[], Cluster]
"""Makes a cluster with directories and ports of its own, ready to be entered."""
