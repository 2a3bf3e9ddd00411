"""A simulated cluster that does what the lines of a scenario say.

The brokers run the code that is shipped, on the network, disks, clock and ZooKeeper of `tests/simulation`.
Nothing is left to chance here: every message takes the same time, and a machine that loses power loses all
that was not flushed. After every step of a broker the checks of the simulation apply too.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, Final

from headrace.coordination.session import Delete
from headrace.coordination.znodes import PERSISTENT_PATHS, TopicAssignment, topic_path
from headrace.coordination.znodes import Controller as ControllerZnode
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.peers import PeerGone
from headrace.protocol.schema.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.protocol.schema.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.protocol.schema.elect_leaders import ElectLeadersRequest, TopicPartitions
from headrace.protocol.schema.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.protocol.schema.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.security.listeners import Endpoint
from scenarios.language import Line, ScenarioError, Vocabulary
from simulation.alarm import heard
from simulation.broker import SESSION_TIMEOUT_MS, simulated
from simulation.checks import Checks
from simulation.log import Batch
from simulation.machine import Machine
from simulation.network import Network, Way
from simulation.peer import Peer
from simulation.process import Process
from simulation.world import World
from simulation.zookeeper import HOST as ZOOKEEPER
from simulation.zookeeper import ZooKeeper

COMMANDS: Final = Vocabulary("a command")
SUBJECTS: Final = Vocabulary("something that can be expected")

PARTITION: Final = TopicPartition("t", 0)
NONE: Final = "none"
WAITS: Final = "waits"
_ANSWERED_S: Final = 0.2  # how long a command waits for the answer to its request
_STARTED_S: Final = 30.0
_REQUEST_S: Final = 60.0
_PRODUCE_TIMEOUT_MS: Final = 10_000
_ALL_RECORDS: Final = 1000


class _NoChance(Random):
    """The same outcome every time: average delays, and the worst for what a power cut may lose."""

    def random(self) -> float:
        return 0.5

    def randint(self, a: int, b: int) -> int:
        del b
        return a


class Stage:
    """The cluster of one scenario, and a client of it."""

    def __init__(self, *, traced: bool = False) -> None:
        self.world = World(0, traced=traced)
        self.world.random = _NoChance(0)
        self._network = Network(self.world)
        self._zookeeper = ZooKeeper(self.world, self._network)
        for path in PERSISTENT_PATHS:
            self._zookeeper.tree.ensure(path)
        self._machines: dict[int, Machine] = {}
        self._client = Process(self.world, self._network, self._network.host("client"))
        self._checks = Checks(self.world, self._zookeeper, self._machines, [PARTITION], unclean_allowed=False)
        self._values: list[str] = []  # a record's value travels as its place in this list
        self._answers: dict[str, str] = {}  # to the last request with this value
        self._last = NONE  # the key of the last request in `_answers`

    def play(self, file: str, lines: list[Line]) -> None:
        """Do what the lines say; raise ScenarioError for the first expectation that is not met."""
        with simulated(), heard(self.world):
            for line in lines:
                self.world.say("", "line %d: %s", line.number, line.text)
                with _located(file, line.number):
                    self._do(line)
            for machine in self._machines.values():
                machine.check_tasks()

    def _do(self, line: Line) -> None:
        for command in line.commands:
            command.function(self, **command.arguments)
        for expectation in line.expectations:
            subject = expectation.subject
            found = (
                self._answers.get(self._last)
                if subject is None
                else subject.function(self, **subject.arguments)
            )
            if found != expectation.expected:
                name = "the answer" if subject is None else subject.text
                raise AssertionError(f"{name}: expected {expectation.expected!r}, found {found!r}")

    # -- brokers -------------------------------------------------------------------------------

    @COMMANDS.phrase("start <brokers>")
    def start(self, brokers: list[int]) -> None:
        """Start brokers, new ones and those that have ended, and wait until they serve requests."""
        for broker_id in brokers:
            if broker_id not in self._machines:
                machine = self._machines[broker_id] = Machine(self.world, self._network, broker_id)
                machine.on_step = self._checks.look
                machine.on_serving = self._checks.serves
            self._machines[broker_id].boot()
            self._machines[broker_id].start()
        self._wait(
            lambda: all(self._machines[each].is_ready for each in brokers), f"broker {brokers} to start"
        )

    @COMMANDS.phrase("stop <brokers>")
    def stop(self, brokers: list[int]) -> None:
        """Stop brokers cleanly, one after another, as SIGTERM does."""
        for broker_id in brokers:
            machine = self._machines[broker_id]
            machine.stop()
            self._wait(lambda machine=machine: machine.process is None, f"broker {broker_id} to stop")  # type: ignore[misc]

    @COMMANDS.phrase("begin-to-stop <brokers>")
    def begin_to_stop(self, brokers: list[int]) -> None:
        """Send brokers SIGTERM, and do not wait until they have stopped."""
        for broker_id in brokers:
            self._machines[broker_id].stop()

    @COMMANDS.phrase("kill <brokers>")
    def kill(self, brokers: list[int]) -> None:
        """Kill the processes: what they have written stays."""
        for broker_id in brokers:
            self._machines[broker_id].kill()

    @COMMANDS.phrase("power-cut <brokers>")
    def power_cut(self, brokers: list[int]) -> None:
        """Switch machines off: what was not flushed is lost."""
        for broker_id in brokers:
            machine = self._machines[broker_id]
            machine.power_cut()
            if not machine.disk.clean:
                self._checks.power_cut(machine)

    @COMMANDS.phrase("flush <brokers>")
    def flush(self, brokers: list[int]) -> None:
        """Bring the logs to the disk, as the operating system does from time to time."""
        for broker_id in brokers:
            for log in self._machines[broker_id].disk.logs.values():
                log.flush()

    @COMMANDS.phrase("pause <brokers>")
    def pause(self, brokers: list[int]) -> None:
        """Stop processes with SIGSTOP: their connections stay open and nothing is answered."""
        for broker_id in brokers:
            self._machines[broker_id].pause()

    @COMMANDS.phrase("resume <brokers>")
    def resume(self, brokers: list[int]) -> None:
        for broker_id in brokers:
            self._machines[broker_id].resume()

    # -- network and time ----------------------------------------------------------------------

    @COMMANDS.phrase("cut <host> <host>")
    def cut(self, host: str, host_2: str) -> None:
        """Drop all packets between two hosts, in both directions."""
        self._network.block(_both_ways(host, host_2))

    @COMMANDS.phrase("refuse <host> <host>")
    def refuse(self, host: str, host_2: str) -> None:
        """Refuse connections from the first host to the second, as a firewall does."""
        self._network.refuse([(_name(host), _name(host_2))])

    @COMMANDS.phrase("heal")
    def heal(self) -> None:
        """Undo every `cut` and `refuse`."""
        self._network.calm_down()

    @COMMANDS.phrase("tick <duration>")
    def tick(self, duration: float) -> None:
        self.world.run_for(duration)

    @COMMANDS.phrase("expire <broker>")
    def expire(self, broker: int) -> None:
        """End the ZooKeeper session of a broker that is alive."""
        machine = self._machines[broker]
        assert machine.broker is not None, f"broker {broker} is not running"
        self._checks.session_ended_early(broker, SESSION_TIMEOUT_MS / 1000)
        self._zookeeper.expire(machine.broker.session.session_id)

    @COMMANDS.phrase("depose the controller")
    def depose(self) -> None:
        """Remove the controller's znode: the brokers elect a controller again."""
        self._zookeeper.tree.change([Delete(ControllerZnode.path)], 0)

    # -- requests ------------------------------------------------------------------------------

    @COMMANDS.phrase("topic t <brokers>")
    def create_topic(self, brokers: list[int]) -> None:
        """Create a topic with one partition; the first replica is the preferred leader."""
        self._create_topic(brokers, {})

    @COMMANDS.phrase("topic t <brokers> unclean.leader.election.enable=true")
    def create_unclean_topic(self, brokers: list[int]) -> None:
        self._checks.unclean_allowed = True
        self._create_topic(brokers, {"unclean.leader.election.enable": "true"})

    def _create_topic(self, brokers: list[int], configs: dict[str, str]) -> None:
        created = CreatableTopic(
            name=PARTITION.topic,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=brokers)],
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
        )
        self._ask_controller(CreateTopicsRequest(topics=[created], timeout_ms=5000), 7, _first_topic)

    @COMMANDS.phrase("produce <partition> <values>")
    def produce(self, partition: TopicPartition, values: list[str]) -> None:
        """Write records, in order, with acks=all to the leader; a value that was sent before is a retry."""
        self._produce(partition, values, -1, self._leader(partition))

    @COMMANDS.phrase("produce <partition> <values> acks=<acks>")
    def produce_with_acks(self, partition: TopicPartition, values: list[str], acks: int) -> None:
        self._produce(partition, values, acks, self._leader(partition))

    @COMMANDS.phrase("produce <partition> <values> acks=<acks> to <broker>")
    def produce_to(self, partition: TopicPartition, values: list[str], acks: int, broker: int) -> None:
        self._produce(partition, values, acks, broker)

    def _produce(self, partition: TopicPartition, values: list[str], acks: int, broker: int) -> None:
        for value in values:
            if value not in self._values:
                self._values.append(value)
            number = self._values.index(value)
            # A producer of its own for each value: its first batch, whenever it is sent, is a retry.
            data = PartitionProduceData(index=0, records=(Batch(number, number, 0, 0),))  # type: ignore[arg-type]
            request = ProduceRequest(
                acks=acks,
                timeout_ms=_PRODUCE_TIMEOUT_MS,
                topic_data=[TopicProduceData(name=partition.topic, partition_data=[data])],
            )
            self._ask(value, broker, request, 9, _produced)

    @COMMANDS.phrase("read <partition>")
    def read(self, partition: TopicPartition) -> None:
        """Read all that a consumer sees, from the leader."""
        self._read(partition, self._leader(partition), 0)

    @COMMANDS.phrase("read <partition> from <broker>")
    def read_from(self, partition: TopicPartition, broker: int) -> None:
        self._read(partition, broker, 0)

    @COMMANDS.phrase("read <partition> at <offset>")
    def read_at(self, partition: TopicPartition, offset: int) -> None:
        self._read(partition, self._leader(partition), offset)

    def _read(self, partition: TopicPartition, broker: int, offset: int) -> None:
        wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=_ALL_RECORDS)
        topics = [FetchTopic(topic=partition.topic, partitions=[wanted])]
        self._ask("read", broker, FetchRequest(max_wait_ms=0, min_bytes=1, topics=topics), 12, self._fetched)

    def _fetched(self, reply: Any) -> str:
        data = reply.responses[0].partitions[0]
        return self._texts(data.records or ()) if data.error_code == 0 else ErrorCode(data.error_code).name

    @COMMANDS.phrase("elect <partition>")
    def elect(self, partition: TopicPartition) -> None:
        """Ask for the election of the preferred leader."""
        self._elect(partition, election_type=0)

    @COMMANDS.phrase("elect <partition> uncleanly")
    def elect_uncleanly(self, partition: TopicPartition) -> None:
        """Elect a live replica as the leader although it may lack committed records."""
        self._checks.unclean_allowed = True
        self._elect(partition, election_type=1)

    def _elect(self, partition: TopicPartition, election_type: int) -> None:
        wanted = [TopicPartitions(topic=partition.topic, partitions=[0])]
        request = ElectLeadersRequest(election_type=election_type, topic_partitions=wanted, timeout_ms=5000)
        self._ask_controller(request, 2, _elected)

    @COMMANDS.phrase("reassign <partition> <brokers>")
    def reassign(self, partition: TopicPartition, brokers: list[int]) -> None:
        """Move a partition to other brokers."""
        moved = ReassignableTopic(
            name=partition.topic, partitions=[ReassignablePartition(partition_index=0, replicas=brokers)]
        )
        request = AlterPartitionReassignmentsRequest(timeout_ms=5000, topics=[moved])
        self._ask_controller(
            request, 0, lambda reply: ErrorCode(reply.responses[0].partitions[0].error_code).name
        )

    def _ask_controller(self, request: Any, version: int, text_of: Callable[[Any], str]) -> None:
        controller = self._controller()
        assert controller is not None, "no broker is the controller"
        self._ask("request", controller, request, version, text_of)
        assert self._answers["request"] == "NONE", self._answers["request"]

    def _ask(self, key: str, broker: int, request: Any, version: int, text_of: Callable[[Any], str]) -> None:
        self._answers[key] = WAITS
        self._last = key

        async def ask() -> None:
            try:
                peer = await Peer.connect(Endpoint("PLAINTEXT", _name(str(broker)), 9092))
                self._answers[key] = text_of(await peer.ask(request, version, timeout_s=_REQUEST_S))
                peer.close()
            except PeerGone:
                self._answers[key] = "disconnected"

        self._client.run(ask())
        self.world.run_for(_ANSWERED_S)

    # -- what can be expected ------------------------------------------------------------------

    @SUBJECTS.phrase("answer <value>")
    def answer(self, value: str) -> str:
        """The answer to the last request that produced this value."""
        return self._answers.get(value, NONE)

    @SUBJECTS.phrase("leader <partition>")
    def leader(self, partition: TopicPartition) -> str:
        leader = self._checks.states[partition].leader
        return NONE if leader == -1 else str(leader)

    @SUBJECTS.phrase("isr <partition>")
    def isr(self, partition: TopicPartition) -> str:
        return _listed(self._checks.states[partition].isr)

    @SUBJECTS.phrase("elr <partition>")
    def elr(self, partition: TopicPartition) -> str:
        """The eligible leader replicas of KIP-966, which are not in the ISR."""
        return _listed(self._checks.states[partition].elr)

    @SUBJECTS.phrase("epoch <partition>")
    def epoch(self, partition: TopicPartition) -> str:
        return str(self._checks.states[partition].leader_epoch)

    @SUBJECTS.phrase("replicas <partition>")
    def replicas(self, partition: TopicPartition) -> str:
        found = self._zookeeper.tree.get(topic_path(partition.topic))
        assert found is not None, f"topic {partition.topic} does not exist"
        return " ".join(
            map(str, TopicAssignment.decode(partition.topic, found.data).replicas[partition.partition])
        )

    @SUBJECTS.phrase("high watermark <partition> on <broker>")
    def high_watermark(self, partition: TopicPartition, broker: int) -> str:
        running = self._machines[broker].broker
        assert running is not None, f"broker {broker} is not running"
        return str(running.partitions[partition].high_watermark)

    @SUBJECTS.phrase("log <partition> on <broker>")
    def log(self, partition: TopicPartition, broker: int) -> str:
        """The records in the log of a replica, committed or not."""
        found = self._machines[broker].disk.logs.get(partition)
        return NONE if found is None else self._texts(found.batches)

    @SUBJECTS.phrase("controller")
    def controller(self) -> str:
        return str(self._controller() or NONE)

    @SUBJECTS.phrase("brokers")
    def brokers(self) -> str:
        """The brokers that are registered in ZooKeeper."""
        return _listed(map(int, self._zookeeper.tree.children("/brokers/ids")))

    # ------------------------------------------------------------------------------------------

    def _controller(self) -> int | None:
        found = self._zookeeper.tree.get(ControllerZnode.path)
        return None if found is None else ControllerZnode.decode(found.data).broker_id

    def _leader(self, partition: TopicPartition) -> int:
        leader = self._checks.states[partition].leader
        assert leader != -1, f"{partition} has no leader: name the broker (to <broker>, from <broker>)"
        return leader

    def _texts(self, batches: Any) -> str:
        return " ".join(self._values[batch.value] for batch in batches) or NONE

    def _wait(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = self.world.now + _STARTED_S
        while not is_so():
            assert self.world.now < deadline, f"waited {_STARTED_S:.0f} s for {what}"
            self.world.run_for(0.05)


@contextmanager
def _located(file: str, line: int) -> Iterator[None]:
    """Report failed assertions, and violations that the simulation finds, with the file and the line."""
    try:
        yield
    except (AssertionError, KeyError) as error:
        raise ScenarioError(file, line, str(error)) from error


def _produced(reply: Any) -> str:
    answer = reply.responses[0].partition_responses[0]
    return f"offset {answer.base_offset}" if answer.error_code == 0 else ErrorCode(answer.error_code).name


def _first_topic(reply: Any) -> str:
    return ErrorCode(reply.topics[0].error_code).name


def _elected(reply: Any) -> str:
    return ErrorCode(reply.replica_election_results[0].partition_result[0].error_code).name


def _listed(brokers: Any) -> str:
    return " ".join(map(str, sorted(brokers))) or NONE


def _name(host: str) -> str:
    return ZOOKEEPER if host == "zookeeper" else f"b{host}"


def _both_ways(one: str, other: str) -> list[Way]:
    return [(_name(one), _name(other)), (_name(other), _name(one))]
