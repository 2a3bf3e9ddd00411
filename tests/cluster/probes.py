"""Writes by hand, to one broker and to no other: what it accepts while it may have been replaced."""

import contextlib
from typing import Any, Final

from cluster.brokers import BrokerProcess
from cluster.cluster import Cluster
from cluster.stage import Scene
from cluster.waiting import until
from support.records import make_batch
from wire.confluent import read
from wire.raw import RawClient
from wire.requests import produce_request

TOPIC: Final = "probes"
VERSION: Final = 9
ACKS_ALL: Final = -1


class Probe:
    """A connection to one broker, and what it has answered."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._client = RawClient(broker.bootstrap)
        self._waiting: list[tuple[bytes, int]] = []
        self.accepted: list[tuple[int, bytes]] = []
        self.refused = 0

    def send(self, value: bytes, acks: int) -> None:
        """Send a write, and do not wait for its answer."""
        self._client.send(_request(value, acks), VERSION)
        self._waiting.append((value, acks))

    def receive(self) -> bool:
        """Take the next answer in; True if the write was accepted."""
        value, acks = self._waiting.pop(0)
        answer = self._client.receive(_request(value, acks), VERSION).responses[0].partition_responses[0]
        if answer.error_code:
            self.refused += 1
        else:
            self.accepted.append((answer.base_offset, value))
        return not answer.error_code

    def write(self, value: bytes, acks: int) -> bool:
        self.send(value, acks)
        return self.receive()

    def receive_all(self) -> None:
        while self._waiting:
            self.receive()

    def receive_what_came(self) -> None:
        """Take in what a broker that is gone has answered."""
        with contextlib.suppress(OSError):
            self.receive_all()
        self.close()

    def close(self) -> None:
        self._client.close()


def led_by_a_probe(
    cluster: Cluster, leader_id: int | None = None, **configs: str
) -> tuple[BrokerProcess, Probe]:
    """A topic for probes, its leader, and a connection to that which has written something."""
    cluster.create_topic(TOPIC, 1, leader_id, **configs)
    leader = cluster.leader(TOPIC, 0)
    probe = Probe(leader)
    until("the probe writes", lambda: probe.write(b"before", 1) and probe.write(b"before, too", ACKS_ALL))
    return leader, probe


def write_to_new_leader(leader: BrokerProcess) -> list[tuple[int, bytes]]:
    """What was written with acks=all, once the broker has heard that it leads."""
    probe = Probe(leader)
    until("the new leader writes", lambda: probe.write(b"meanwhile", ACKS_ALL))
    probe.close()
    return probe.accepted


def check_kept(scene: Scene, accepted: list[tuple[int, bytes]]) -> None:
    """Whatever was accepted is where its answer said."""
    found = {message.offset(): message.value() for message in read(scene.cluster.bootstrap, TOPIC)}
    for offset, value in accepted:
        if found.get(offset) != value:
            scene.problem(
                f"LOST: {value!r} was acknowledged at {offset}, where there is {found.get(offset)!r}"
            )


def _request(value: bytes, acks: int) -> Any:
    return produce_request(TOPIC, make_batch([value]), acks=acks)
