"""One run: a cluster at work, a storm, and what must be true when it is over."""

from collections.abc import Callable
from functools import partial
from itertools import count
from random import Random

from headrace.coordination.session import Create
from headrace.coordination.znodes import PERSISTENT_PATHS, Config, TopicAssignment
from headrace.coordination.znodes import Controller as ControllerZnode
from headrace.storage.topics import TopicPartition
from simulation.alarm import heard
from simulation.broker import simulated
from simulation.checks import Checks
from simulation.machine import Machine
from simulation.network import Network
from simulation.operators import REPLICAS
from simulation.producer import ALL, LEADER, Producer
from simulation.reader import Reader
from simulation.storm import Storm
from simulation.world import Violation, World
from simulation.zookeeper import ZooKeeper

TOPIC = "t"
_TOPIC_ID = bytes(range(1, 17))
_CALM_S = 1.0  # before the storm
_HEALING_S = 90.0  # after it, until everything must be well; some requests wait 30 s for an answer
_LOOK_S = 0.25


class Story:
    """A seed decides how many brokers, partitions and clients there are, how slow all is, and what breaks."""

    def __init__(self, seed: int, *, traced: bool = False) -> None:
        chance = self._chance = Random(seed * 7919 + 1)  # what kind of story; the world has its own
        world = self.world = World(seed, traced=traced)
        self.network = Network(world)
        self.zookeeper = ZooKeeper(world, self.network)
        brokers = range(1, chance.choice((3, 3, 4, 5)) + 1)
        self.machines = {each: Machine(world, self.network, each) for each in brokers}
        are_silent = chance.random() < 0.3
        for machine in self.machines.values():
            machine.is_silent = are_silent
        self.ids = [TopicPartition(TOPIC, index) for index in range(chance.choice((1, 1, 2)))]
        self.unclean_allowed = chance.random() < 0.1
        self.checks = Checks(
            world, self.zookeeper, self.machines, self.ids, unclean_allowed=self.unclean_allowed
        )
        self.network.slowness_s = chance.choice((0.001, 0.003, 0.02))
        self.network.slownesses = chance.choice(((1.0,), (1.0,), (1.0, 1.0, 10.0, 60.0)))
        self.network.stalls = chance.choice((0, 0.001, 0.02))
        self.network.breaks = chance.choice((0, 0.001, 0.01))
        self.storm = Storm(
            world,
            self.network,
            self.zookeeper,
            self.machines,
            self.checks,
            power_cuts=chance.choice((0, 1, 1, 2, 5)),
        )
        self.producers: list[Producer] = []

    def play(self) -> None:
        """Violation if anything is ever wrong."""
        with simulated(), heard(self.world):
            self._begin()
            self.world.run_for(_CALM_S)
            self.storm.begin(after_s=0)
            self.world.run_for(self._chance.uniform(1, 8))
            self.storm.end()
            before = [producer.acknowledged for producer in self.producers]
            self._wait("new writes are acknowledged", partial(self._have_written, before))
            if self._chance.random() < 0.2:
                self._silence_a_follower()
            for producer in self.producers:
                producer.is_stopped = True
            self._wait("everything is in sync", self._is_whole)
            for machine in self.machines.values():
                machine.check_tasks()

    def _begin(self) -> None:
        self._make_topic()
        for machine in self.machines.values():
            machine.on_step = self.checks.look
            machine.start()
        self._start_clients()

    def _make_topic(self) -> None:
        tree = self.zookeeper.tree
        for path in PERSISTENT_PATHS:
            tree.ensure(path)
        topic = TopicAssignment(
            topic=TOPIC,
            topic_id=_TOPIC_ID,
            replicas={id_.partition: self._chance.sample(list(self.machines), REPLICAS) for id_ in self.ids},
        )
        settings = {"unclean.leader.election.enable": "true"} if self.unclean_allowed else {}
        config = Config(kind="topics", name=TOPIC, values=settings)
        tree.change(
            [
                Create(topic.path, topic.encode()),
                Create(f"{topic.path}/partitions", b""),
                Create(config.path, config.encode()),
            ],
            0,
        )

    def _start_clients(self) -> None:
        names = [machine.name for machine in self.machines.values()]
        values = count(1)
        for number in range(self._chance.choice((1, 1, 2))):
            id_ = self._chance.choice(self.ids)
            self.producers.append(
                Producer(
                    self.world,
                    self.network,
                    f"p{number}",
                    names,
                    id_,
                    values=values,
                    ledger=self.checks.ledgers[id_],
                    acks=self._chance.choice((ALL, ALL, ALL, LEADER)),
                    window=self._chance.choice((1, 2, 3)),
                    pause_s=self._chance.choice((0.03, 0.3, 0.6)),
                )
            )
        Reader(self.world, self.network, "r", names, self.ids[0], ledger=self.checks.ledgers[self.ids[0]])

    # -- afterwards ----------------------------------------------------------------------------

    def _silence_a_follower(self) -> None:
        """One that is there and does not fetch falls out of sync, or nothing is committed any more.

        Neither of the two is the controller. What it writes would be known to one side only, for as long as
        both are alive to ZooKeeper: a leader that is told of nothing, or one that can propose nothing.
        """
        id_ = self._chance.choice(self.producers).id
        self._wait("all are in sync", lambda: len(self.checks.states[id_].isr) == REPLICAS)
        state = self.checks.states[id_]
        controller = self._controller()
        if state.leader == controller:
            return
        others = [each for each in state.isr if each not in {state.leader, controller}]
        leader, follower = (self.machines[each].name for each in (state.leader, self._chance.choice(others)))
        ways = [(leader, follower), (follower, leader)]
        self.network.block(ways)
        before = [producer.acknowledged for producer in self.producers]
        self._wait("writes go on without a follower", partial(self._have_written, before))
        self.network.unblock(ways)

    def _controller(self) -> int:
        found = self.zookeeper.tree.get(ControllerZnode.path)
        return -1 if found is None else ControllerZnode.decode(found.data).broker_id

    def _wait(self, what: str, is_so: Callable[[], bool]) -> None:
        deadline = self.world.now + _HEALING_S
        while not is_so():
            if self.world.now > deadline:
                raise Violation(
                    f"{_HEALING_S:.0f} s after the storm it is not so that {what}\n{self._state()}"
                )
            self.world.run_for(_LOOK_S)

    def _have_written(self, before: list[int]) -> bool:
        counts = zip(self.producers, before, strict=True)
        return all(producer.acknowledged > had + 2 for producer, had in counts)

    def _is_whole(self) -> bool:
        return (
            all(producer.is_done for producer in self.producers)
            and all(machine.is_ready for machine in self.machines.values())
            and all(map(self._is_in_sync, self.ids))
        )

    def _is_in_sync(self, id_: TopicPartition) -> bool:
        """All replicas have all records and nothing else, and nothing is on the move."""
        state, committed = self.checks.states[id_], self.checks.ledgers[id_].committed
        found = self.zookeeper.tree.get(f"/brokers/topics/{TOPIC}")
        assert found is not None
        assignment = TopicAssignment.decode(TOPIC, found.data)
        replicas = assignment.replicas[id_.partition]
        if id_.partition in {**assignment.adding, **assignment.removing}:
            return False
        if state.leader == -1 or sorted(state.isr) != sorted(replicas) or len(replicas) != REPLICAS:
            return False
        for each in replicas:
            broker = self.machines[each].broker
            partition = None if broker is None else broker.partitions.get(id_)
            log = self.machines[each].disk.logs.get(id_)
            if partition is None or log is None:
                return False
            knows = (partition.leader, partition.leader_epoch, partition.version)
            if knows != (state.leader, state.leader_epoch, state.version):
                return False
            if partition.high_watermark != len(committed) or log.batches != committed[log.log_start_offset :]:
                return False
        return True

    def _state(self) -> str:
        lines = [f"{state}" for state in self.checks.states.values()]
        for machine in self.machines.values():
            for id_, partition in {} if machine.broker is None else machine.broker.partitions.items():
                lines.append(
                    f"{machine.name} {id_}: leader {partition.leader} epoch {partition.leader_epoch} version "
                    f"{partition.version}, {partition.high_watermark} of {partition.log.log_end_offset} "
                    f"committed, {partition.leadership}"
                )
        return "\n".join(lines)
