"""Three brokers with thousands of partitions: how long a kill -9 of a leader, and of the controller, is felt.

Every partition has three replicas. A producer with acks=all writes to a topic of its own all the time.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final

from compare.checked import Writer
from compare.cluster import Cluster, MakeCluster
from compare.cluster_wire import spread_of
from compare.wire import ask, leaders_answer
from headrace.client.wire.connection import Address, NoAnswer
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.create_topics import CreatableTopic, CreateTopicsRequest

PER_TOPIC: Final = 1000
BESIDE: Final = "beside"
BESIDE_PARTITIONS: Final = 6
TIMEOUT_S: Final = 120
SETTLED_S: Final = 3.0
_POLL_S: Final = 0.02
_QUICK_S: Final = 5.0


def measure(make: MakeCluster, partitions: int) -> dict[str, float]:
    """Start a cluster, create so many partitions, and kill two of its brokers, one after the other."""
    names = [f"scale-{number}" for number in range(partitions // PER_TOPIC)]
    with make() as cluster:
        cluster.create_topic(BESIDE, partitions=BESIDE_PARTITIONS)
        began = time.perf_counter()
        for name in names:
            cluster.create_topic(name, partitions=PER_TOPIC)
        figures = {"create, 3 replicas s": time.perf_counter() - began}
        time.sleep(SETTLED_S)
        figures |= _lose_leader(cluster, names)
        figures |= _lose_controller(cluster, names)
        began = time.perf_counter()
        cluster.delete_topic(names[0])
        figures["delete, 3 replicas s"] = time.perf_counter() - began
    return figures


def _lose_leader(cluster: Cluster, names: Sequence[str]) -> dict[str, float]:
    """Kill a broker that is not the controller."""
    controller = cluster.controller()
    victim = next(each for each in cluster.addresses if each != controller)
    led = sum(len(cluster.spread(name).led_by(victim)) for name in names)
    writer = Writer(cluster.bootstrap, BESIDE, BESIDE_PARTITIONS)
    writer.start()
    try:
        _until("the producer writes", lambda: _writes(writer))
        seconds = _kill(cluster, victim, lambda: _have_leaders(cluster, names, victim))
        _until("the producer continues", lambda: _writes(writer))
    finally:
        writer.stop()
    began = time.perf_counter()
    _restart(cluster, victim, names)
    return {
        "partitions led": led,
        "leader failover s": seconds,
        "producer pause s": writer.gaps.longest,
        "back in sync s": time.perf_counter() - began,
    }


def _lose_controller(cluster: Cluster, names: Sequence[str]) -> dict[str, float]:
    """Kill the controller, which leads partitions as well."""
    victim = cluster.controller()
    seconds = _kill(cluster, victim, lambda: _creates_a_topic(cluster, victim))
    _restart(cluster, victim, names)
    return {"controller failover s": seconds}


def _kill(cluster: Cluster, victim: int, is_over: Callable[[], bool]) -> float:
    began = time.perf_counter()
    cluster.kill(victim)
    _until(f"{cluster.name} has recovered from the loss of broker {victim}", is_over)
    return time.perf_counter() - began


def _restart(cluster: Cluster, victim: int, names: Sequence[str]) -> None:
    cluster.start(victim)
    for name in names:
        cluster.await_in_sync(name, PER_TOPIC)


def _writes(writer: Writer) -> bool:
    """Whether records of every partition are acknowledged, all but the newest ones."""
    if writer.problems:
        raise RuntimeError(writer.problems[0])
    return all(
        writer.acknowledged(each) >= max(10, writer.sent[each] - 100) for each in range(BESIDE_PARTITIONS)
    )


def _have_leaders(cluster: Cluster, names: Sequence[str], gone: int) -> bool:
    """Whether another broker leads every partition, and knows it."""
    others = {each: address for each, address in cluster.addresses.items() if each != gone}
    return all(_has_leaders(others, name) for name in names)


def _has_leaders(brokers: dict[int, Address], name: str) -> bool:
    found = spread_of(next(iter(brokers.values())), name)
    return set(found.leaders) <= brokers.keys() and all(
        leaders_answer(brokers[leader], name, found.led_by(leader)) for leader in set(found.leaders)
    )


_created = iter(range(1_000_000))


def _creates_a_topic(cluster: Cluster, gone: int) -> bool:
    """Whether a topic can be created; a new name each time, because an attempt may succeed unseen."""
    address = next(address for each, address in cluster.addresses.items() if each != gone)
    topic = CreatableTopic(
        name=f"after-{next(_created)}", num_partitions=1, replication_factor=2, assignments=(), configs=()
    )
    try:
        response = ask(address, CreateTopicsRequest(topics=[topic], timeout_ms=5000), timeout_s=_QUICK_S)
    except NoAnswer:
        return False
    return bool(response.topics[0].error_code == ErrorCode.NONE)


def _until(what: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {TIMEOUT_S} s in vain until {what}")
        time.sleep(_POLL_S)
