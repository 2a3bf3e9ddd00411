"""Topics that come and go while controllers are killed: each is there for everybody, or for nobody."""

import itertools
import threading
from collections.abc import Callable
from typing import Final

from confluent_kafka import Producer

from cluster.brokers import BrokerProcess
from cluster.cluster import REPLICAS
from cluster.stage import Scene
from cluster.waiting import until
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.protocol.schema.delete_topics import DeleteTopicsRequest
from headrace.protocol.schema.metadata import MetadataRequest
from wire.raw import RawClient

KILLS: Final = 4
BEFORE_A_KILL: Final = 6  # topics that were made
PARTITIONS: Final = 4
PREFIX: Final = "fleeting"


def topics_come_and_go_while_controllers_are_killed(scene: Scene) -> None:
    maker = Maker(scene)
    maker.start()
    try:
        for kills in range(1, KILLS + 1):
            _kill_controller_after(scene, maker, kills * BEFORE_A_KILL)
    finally:
        maker.stop()
    scene.cluster.heal()
    scene.figures |= {"topics made": len(maker.made), "and deleted": len(maker.deleted)}
    brokers = scene.cluster.brokers.values()
    until("every broker has what it should", lambda: not any(maker.wrong_on(each) for each in brokers))


def _kill_controller_after(scene: Scene, maker: "Maker", topics: int) -> None:
    until("topics are made", lambda: len(maker.made) >= topics)
    former = scene.cluster.controller()
    former.kill()
    until("another is the controller", lambda: scene.cluster.controller_id() not in {0, former.id})
    former.start()


class Maker:
    """A thread that makes topics, and deletes every second one; it asks any broker until one says yes.

    Each topic gets a record: a log without records has no directory.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="maker")
        self.made: list[str] = []
        self.deleted: list[str] = []
        self._unknown: set[str] = set()  # asked for when the maker was stopped
        self._producer = Producer({"bootstrap.servers": scene.cluster.bootstrap, "log_level": 0})

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        for number in itertools.count():
            name = f"{PREFIX}-{number}"
            self._unknown.add(name)
            if not self._insist(name, self._create) or not self._write(name):
                return
            self.made.append(name)
            if number % 2 and not self._insist(name, self._delete):
                return
            self.deleted += [name] if number % 2 else []
            self._unknown.discard(name)

    def _write(self, name: str) -> bool:
        """False if it was stopped before the record was acknowledged."""
        errors: list[object] = []  # one, once the record is delivered or given up
        self._producer.produce(name, b"here", on_delivery=lambda error, _: errors.append(error))
        while not self._stopping.is_set():
            self._producer.poll(0.05)
            if errors:
                assert errors == [None]
                return True
        return False

    def wrong_on(self, broker: BrokerProcess) -> list[str]:
        """Topics that a broker knows and should not, or the other way round, also on its disk."""
        with RawClient(broker.bootstrap) as client:
            answer = client.ask(MetadataRequest(topics=None), 12)
        known = {each.name for each in answer.topics if each.name.startswith(PREFIX)}
        led = all(part.leader_id > 0 for each in answer.topics for part in each.partitions)
        names = {each.name.rpartition("-")[0] for each in broker.log_dir.iterdir() if each.is_dir()}
        stored = {name for name in names if name.startswith(PREFIX)}
        expected = set(self.made) - set(self.deleted)
        wrong = ((known ^ expected) | (stored ^ expected)) - self._unknown
        return sorted(wrong) + ([] if led else ["a topic without a leader"])

    def _insist(self, name: str, ask: Callable[[RawClient, str], bool]) -> bool:
        """False if it was stopped before anybody said yes."""
        brokers = itertools.cycle(self._scene.cluster.brokers.values())
        while not self._stopping.is_set():
            try:
                with RawClient(next(brokers).bootstrap) as client:
                    if ask(client, name):
                        return True
            except OSError:
                self._stopping.wait(0.05)  # it is down, or does not know the controller
        return False

    def _create(self, client: RawClient, name: str) -> bool:
        topic = CreatableTopic(
            name=name, num_partitions=PARTITIONS, replication_factor=REPLICAS, assignments=(), configs=()
        )
        (answer,) = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=5000), 7).topics
        return answer.error_code in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}

    def _delete(self, client: RawClient, name: str) -> bool:
        (answer,) = client.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=5000), 5).responses
        return answer.error_code in {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
