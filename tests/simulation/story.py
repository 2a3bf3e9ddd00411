"""One run: a cluster at work, a storm, and what must be true when it is over."""

from itertools import count
from random import Random

from headrace.coordination.session import Create
from headrace.coordination.znodes import PERSISTENT_PATHS, Config, TopicAssignment
from headrace.protocol.ids import TopicPartition
from simulation.aftermath import Aftermath
from simulation.alarm import heard
from simulation.broker import simulated
from simulation.checks import Checks
from simulation.machine import Machine
from simulation.network import Network
from simulation.operators import REPLICAS
from simulation.producer import ALL, LEADER, Producer
from simulation.reader import Reader
from simulation.storm import Storm
from simulation.world import World
from simulation.zookeeper import ZooKeeper

TOPIC = "t"
_TOPIC_ID = bytes(range(1, 17))
_CALM_S = 1.0  # before the storm


class Story:
    """A seed decides how many brokers, partitions and clients there are, how slow all is, and what breaks."""

    def __init__(self, seed: int, *, traced: bool = False) -> None:
        chance = self._chance = Random(seed * 7919 + 1)  # what kind of story; the world has its own
        world = self.world = World(seed, traced=traced)
        self.network = Network(world)
        self.zookeeper = ZooKeeper(world, self.network)
        is_restless = chance.random() < 0.1
        brokers = range(1, (5 if is_restless else chance.choice((3, 3, 4, 5))) + 1)
        self.machines = {each: Machine(world, self.network, each) for each in brokers}
        are_silent = chance.random() < 0.3
        exits_are_provable = chance.random() < 0.4
        for machine in self.machines.values():
            machine.is_silent = are_silent
            machine.exits_are_provable = exits_are_provable
        self.ids = [TopicPartition(TOPIC, index) for index in range(chance.choice((1, 1, 2)))]
        self.unclean_allowed = chance.random() < 0.1
        self.checks = Checks(
            world, self.zookeeper, self.machines, self.ids, unclean_allowed=self.unclean_allowed
        )
        self.network.slowness_s = chance.choice((0.001, 0.003, 0.02))
        if is_restless or chance.random() < 0.3:
            self.network.slownesses = (1.0, 1.0, 10.0, 60.0)
        self.network.stalls = chance.choice((0, 0.001, 0.02))
        self.network.breaks = chance.choice((0, 0.001, 0.01))
        self.storm = Storm(
            world,
            self.network,
            self.zookeeper,
            self.machines,
            self.checks,
            power_cuts=chance.choice((0, 1, 1, 2, 5)),
            restless=is_restless,
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
            aftermath = Aftermath(self.world, self.network, self.zookeeper, self.machines, self.checks)
            aftermath.writes_go_on(self.producers)
            if self._chance.random() < 0.2:
                aftermath.writes_go_on_without_a_follower(self.producers, self._chance)
            aftermath.all_is_whole(self.producers)

    def _begin(self) -> None:
        self._make_topic()
        for machine in self.machines.values():
            machine.on_step = self.checks.look
            machine.on_serving = self.checks.serves
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
