"""Producers of other clients whose leader is killed: what they were told is true as well."""

import itertools
import time
from collections.abc import Callable
from typing import Final

from cluster.ledger import Slot
from cluster.other_clients import KEYS, Aiokafka, Client, Failed, Java, KafkaPython, Told
from cluster.stage import Scene
from cluster.waiting import until
from compat.kafka_tools.java import KafkaUnavailableError, find_kafka
from wire.confluent import read

TOPIC: Final = "others"
PARTITIONS: Final = 3
ENOUGH: Final = 200  # records, before and after every turn of events


def why_no_java() -> str | None:
    """Why Apache Kafka's own producer cannot be run here; None if it can."""
    try:
        find_kafka()
    except KafkaUnavailableError as error:
        return str(error)
    return None


def kafka_python_writes_while_a_leader_is_killed(scene: Scene) -> None:
    _write_over_a_kill(scene, lambda told, failed: KafkaPython(scene.cluster.bootstrap, TOPIC, told, failed))


def aiokafka_writes_while_a_leader_is_killed(scene: Scene) -> None:
    _write_over_a_kill(scene, lambda told, failed: Aiokafka(scene.cluster.bootstrap, TOPIC, told, failed))


def java_writes_while_a_leader_is_killed(scene: Scene) -> None:
    def start(told: Told, failed: Failed) -> Client:
        return Java(find_kafka(), scene.root, scene.cluster.bootstrap, topic=TOPIC, told=told, failed=failed)

    _write_over_a_kill(scene, start)


def _write_over_a_kill(scene: Scene, start: Callable[[Told, Failed], Client]) -> None:
    cluster = scene.cluster
    cluster.create_topic(TOPIC, PARTITIONS)
    acknowledged: dict[Slot, int] = {}
    failed: list[str] = []
    times: list[float] = []

    def told(slot: Slot, number: int) -> None:
        acknowledged[slot] = number
        times.append(time.monotonic())

    def more() -> None:
        before = len(acknowledged)
        until(
            f"{ENOUGH} more records are written (failed: {failed[:3]})",
            lambda: len(acknowledged) > before + ENOUGH or failed,
        )

    client = start(told, failed.append)
    try:
        more()
        leader = cluster.leader(TOPIC, 0)
        leader.kill()
        more()
        leader.start()
        cluster.heal()
        more()
    finally:
        client.stop()
    pause = max(later - earlier for earlier, later in itertools.pairwise(times))
    scene.figures |= {"the other client's records": len(acknowledged), "and pause s": round(pause, 2)}
    for problem in (*failed[:3], *_check(cluster.bootstrap, acknowledged)):
        scene.problem(problem)


def _check(bootstrap: str, acknowledged: dict[Slot, int]) -> list[str]:
    """Nothing lost, nothing twice, the records of a key in order."""
    log = {
        Slot(message.partition(), message.offset()): int(message.value())
        for message in read(bootstrap, TOPIC, partitions=range(PARTITIONS))
    }
    found = [f"LOST: {number} at {slot}" for slot, number in acknowledged.items() if log.get(slot) != number]
    if len(set(log.values())) != len(log):
        found.append(f"TWICE: {len(log)} records, {len(set(log.values()))} of them different")
    latest: dict[int, int] = {}
    for slot, number in sorted(log.items()):
        if latest.get(number % KEYS, -1) >= number:
            found.append(f"OUT OF ORDER: {number} at {slot} comes after {latest[number % KEYS]}")
        latest[number % KEYS] = number
    return found[:5]
