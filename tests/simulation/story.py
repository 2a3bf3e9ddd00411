"""One run: a cluster at work, a storm, and what must be true when it is over."""

from collections.abc import Iterable, Iterator
from itertools import count
from random import Random

from headrace.coordination.session import Create
from headrace.coordination.znodes import PERSISTENT_PATHS, Config, TopicAssignment
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.add_partitions_to_txn import AddPartitionsToTxnRequest
from headrace.protocol.schema.write_txn_markers import WriteTxnMarkersRequest
from simulation.aftermath import Aftermath
from simulation.alarm import heard
from simulation.bank import OFFSETS, STATES, Bank
from simulation.broker import simulated
from simulation.checks import Checks
from simulation.committed import CommittedReader, OffsetReader
from simulation.machine import Machine
from simulation.network import Network
from simulation.operators import REPLICAS
from simulation.producer import ALL, LEADER, Producer
from simulation.reader import Reader
from simulation.storm import Storm
from simulation.worker import Worker
from simulation.world import World
from simulation.zookeeper import ZooKeeper

TOPIC = "t"
BANKS = 0.08  # how many stories have transactions; they take several times as long as others
BLACKOUTS = 0.1  # how many stories have a power cut of all machines
NODES = 0.3  # how many stories have brokers that share a node, whose new replicas are seeded
_TOPIC_ID = bytes(range(1, 17))
_STATES_ID, _OFFSETS_ID = bytes(range(21, 37)), bytes(range(41, 57))
_CALM_S = 1.0  # before the storm


def _bank_chance(seed: int) -> Random:
    """The chance of what concerns transactions: stories without them are what they were before."""
    return Random(seed * 104729 + 7)


def _nodes(seed: int, brokers: Iterable[int]) -> dict[int, str | None]:
    """Return the node of each broker: in some stories all are on one of two, in the others each is alone."""
    chance = Random(seed * 15485863 + 11)  # stories without nodes are what they were before
    has_nodes = chance.random() < NODES
    return {each: chance.choice(("n1", "n2")) if has_nodes else None for each in brokers}


def has_bank(seed: int) -> bool:
    """Return whether the story of a seed has transactions."""
    return _bank_chance(seed).random() < BANKS


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
        self._blackout_chance = Random(seed * 32452843 + 13)  # stories without one are what they were before
        self.has_blackout = self._blackout_chance.random() < BLACKOUTS
        exits_are_provable = chance.random() < 0.4
        nodes = _nodes(seed, brokers)
        for machine in self.machines.values():
            machine.node = nodes[machine.broker_id]
            machine.is_silent = are_silent
            machine.exits_are_provable = exits_are_provable
        self.ids = [TopicPartition(TOPIC, index) for index in range(chance.choice((1, 1, 2)))]
        self._bank_chance = _bank_chance(seed)
        self.bank = Bank() if self._bank_chance.random() < BANKS else None
        if self.bank is not None:
            self.ids = [TopicPartition(TOPIC, index) for index in range(2)]
        self.unclean_allowed = chance.random() < 0.1
        if self.bank is not None:
            self.unclean_allowed = False
        everything = self.ids if self.bank is None else [*self.ids, STATES, OFFSETS]
        self.checks = Checks(
            world, self.zookeeper, self.machines, everything, unclean_allowed=self.unclean_allowed
        )
        self.network.slowness_s = chance.choice((0.001, 0.003, 0.02))
        if is_restless or chance.random() < 0.3:
            self.network.slownesses = (1.0, 1.0, 10.0, 60.0)
        self.network.stalls = chance.choice((0, 0.001, 0.02))
        self.network.breaks = chance.choice((0, 0.001, 0.01))
        if self.bank is not None:
            self.network.breaks = self._bank_chance.choice((0.0, 0.003, 0.03))
            self.network.late = {WriteTxnMarkersRequest: 0.2, AddPartitionsToTxnRequest: 0.05}
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
        self.workers: list[Worker] = []

    def play(self) -> None:
        """Violation if anything is ever wrong."""
        with simulated(), heard(self.world):
            self._begin()
            self.world.run_for(_CALM_S)
            duration_s = self._chance.uniform(1, 8)
            blackout_after_s = self._blackout_chance.uniform(0, duration_s) if self.has_blackout else None
            self.storm.begin(after_s=0, blackout_after_s=blackout_after_s)
            self.world.run_for(duration_s)
            self.storm.end()
            aftermath = Aftermath(self.world, self.network, self.zookeeper, self.machines, self.checks)
            aftermath.writes_go_on(self.producers)
            if self._chance.random() < 0.2:
                aftermath.writes_go_on_without_a_follower(self.producers, self._chance)
            aftermath.transactions_go_on(self.workers)
            aftermath.all_is_whole(self.producers)
            if self.bank is not None:
                aftermath.offsets_are_read(self.bank)
                self._check_bank(self.bank)

    def _check_bank(self, bank: Bank) -> None:
        ledgers = self.checks.ledgers
        if not any(ledger.has_lost for ledger in ledgers.values()):
            bank.check({id_: ledger.committed for id_, ledger in ledgers.items()})

    def _begin(self) -> None:
        self._make_topic()
        for machine in self.machines.values():
            machine.on_step = self.checks.look
            machine.on_serving = self.checks.serves
            machine.start()
        self._start_clients()

    def _make_topic(self) -> None:
        for path in PERSISTENT_PATHS:
            self.zookeeper.tree.ensure(path)
        settings = {"unclean.leader.election.enable": "true"} if self.unclean_allowed else {}
        self._put_topic(TOPIC, _TOPIC_ID, self.ids, self._chance, settings)
        if self.bank is not None:
            self._put_topic(STATES.topic, _STATES_ID, [STATES], self._bank_chance, {})
            self._put_topic(OFFSETS.topic, _OFFSETS_ID, [OFFSETS], self._bank_chance, {})

    def _put_topic(
        self, name: str, topic_id: bytes, ids: list[TopicPartition], chance: Random, settings: dict[str, str]
    ) -> None:
        tree = self.zookeeper.tree
        topic = TopicAssignment(
            topic=name,
            topic_id=topic_id,
            replicas={id_.partition: chance.sample(list(self.machines), REPLICAS) for id_ in ids},
        )
        config = Config(kind="topics", name=name, values=settings)
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
        if self.bank is not None:
            self._open_bank(self.bank, names, values)

    def _open_bank(self, bank: Bank, names: list[str], values: Iterator[int]) -> None:
        for number in range(self._bank_chance.choice((1, 2, 3))):
            self.workers.append(
                Worker(
                    self.world,
                    self.network,
                    f"w{number}",
                    names,
                    self.ids,
                    transactional_id=f"bank-{self._bank_chance.choice((0, 0, 1))}",
                    values=values,
                    bank=bank,
                )
            )
        for id_ in self.ids:
            ledger = self.checks.ledgers[id_]
            CommittedReader(
                self.world, self.network, f"c{id_.partition}", names, id_, ledger=ledger, bank=bank
            )
        for number, group in enumerate(sorted({worker.transactional_id for worker in self.workers})):
            OffsetReader(self.world, self.network, f"o{number}", names, self.ids[0], group=group, bank=bank)
