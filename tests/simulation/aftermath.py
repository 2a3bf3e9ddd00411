"""What must come true once the storm is over: writes go on, and in the end all replicas are alike."""

from collections.abc import Callable, Sequence
from random import Random

from headrace.coordination.znodes import Controller as ControllerZnode
from headrace.coordination.znodes import TopicAssignment, topic_path
from headrace.protocol.ids import TopicPartition
from simulation.bank import TIMEOUT_MS, Bank
from simulation.checks import Checks
from simulation.machine import Machine
from simulation.network import Network
from simulation.operators import REPLICAS
from simulation.producer import Producer
from simulation.worker import Worker
from simulation.world import Violation, World
from simulation.zookeeper import ZooKeeper

_HEALING_S = 90.0  # until it must be so; some requests wait 30 s for an answer
_LOOK_S = 0.25
_WRITES = 3  # of each producer


class Aftermath:
    """Lets time pass until it is so; Violation if that takes too long."""

    def __init__(
        self,
        world: World,
        network: Network,
        zookeeper: ZooKeeper,
        machines: dict[int, Machine],
        checks: Checks,
    ) -> None:
        self._world = world
        self._network = network
        self._zookeeper = zookeeper
        self._machines = machines
        self._checks = checks

    def writes_go_on(self, producers: Sequence[Producer], what: str = "new writes are acknowledged") -> None:
        wanted = [(producer, producer.acknowledged + _WRITES) for producer in producers]
        self._wait(what, lambda: all(producer.acknowledged >= count for producer, count in wanted))

    def writes_go_on_without_a_follower(self, producers: Sequence[Producer], chance: Random) -> None:
        """One that is there and does not fetch falls out of sync, or nothing would be committed any more.

        Neither of the two is the controller. What it writes would be known to one side only, for as long as
        both are alive to ZooKeeper: a leader that is told of nothing, or one that can propose nothing.
        """
        id_, states = chance.choice(producers).id, self._checks.states
        self._wait("all are in sync", lambda: len(states[id_].isr) == REPLICAS and states[id_].leader != -1)
        state, controller = states[id_], self._controller()
        if state.leader == controller:
            return
        others = [each for each in state.isr if each not in {state.leader, controller}]
        leader, follower = (self._machines[each].name for each in (state.leader, chance.choice(others)))
        ways = [(leader, follower), (follower, leader)]
        self._network.block(ways)
        wanted = [(producer, producer.acknowledged + _WRITES) for producer in producers]
        self._wait(
            "writes go on without a follower",
            # The session of the controller may end now, and one of the two be elected.
            lambda: (
                self._controller() != controller
                or all(producer.acknowledged >= count for producer, count in wanted)
            ),
        )
        self._network.unblock(ways)

    def transactions_go_on(self, workers: Sequence[Worker]) -> None:
        """New transactions are committed or aborted; then every worker ends its last one."""
        if not workers:
            return
        wanted = sum(worker.finished for worker in workers) + 2
        self._wait("transactions go on", lambda: sum(worker.finished for worker in workers) >= wanted)
        for worker in workers:
            worker.is_stopped = True
        self._wait("workers end", lambda: all(worker.is_done for worker in workers))
        self._world.run_for(2 * TIMEOUT_MS / 1000)  # transactions that nobody ends are aborted

    def offsets_are_read(self, bank: Bank) -> None:
        """Every group is told its offset once more."""
        groups = set(bank.last_offsets)
        bank.last_offsets.clear()
        self._wait("groups get their offsets", lambda: groups <= bank.last_offsets.keys())

    def all_is_whole(self, producers: Sequence[Producer]) -> None:
        """Nobody writes any more: every broker is there, and every replica has every record."""
        for producer in producers:
            producer.is_stopped = True
        self._wait("everything is in sync", lambda: self._is_whole(producers))
        for machine in self._machines.values():
            machine.check_tasks()

    def _is_whole(self, producers: Sequence[Producer]) -> bool:
        return (
            all(producer.is_done for producer in producers)
            and all(machine.is_ready for machine in self._machines.values())
            and all(map(self._is_in_sync, self._checks.ledgers))
        )

    def _controller(self) -> int:
        found = self._zookeeper.tree.get(ControllerZnode.path)
        return -1 if found is None else ControllerZnode.decode(found.data).broker_id

    def _wait(self, what: str, is_so: Callable[[], bool]) -> None:
        deadline = self._world.now + _HEALING_S
        while not is_so():
            if self._world.now > deadline:
                raise Violation(
                    f"{_HEALING_S:.0f} s after the storm it is not so that {what}\n{self._state()}"
                )
            self._world.run_for(_LOOK_S)

    def _is_in_sync(self, id_: TopicPartition) -> bool:
        """All replicas have all records and nothing else, and nothing is on the move."""
        state, committed = self._checks.states.get(id_), self._checks.ledgers[id_].committed
        found = self._zookeeper.tree.get(topic_path(id_.topic))
        assert found is not None
        assignment = TopicAssignment.decode(id_.topic, found.data)
        replicas = assignment.replicas[id_.partition]
        if id_.partition in {**assignment.adding, **assignment.removing}:
            return False
        if (
            state is None
            or state.leader == -1
            or sorted(state.isr) != sorted(replicas)
            or len(replicas) != REPLICAS
        ):
            return False
        for each in replicas:
            broker = self._machines[each].broker
            partition = None if broker is None else broker.partitions.get(id_)
            log = self._machines[each].disk.logs.get(id_)
            if partition is None or log is None:
                return False
            knows = (partition.leader, partition.leader_epoch, partition.version)
            if knows != (state.leader, state.leader_epoch, state.version):
                return False
            if partition.high_watermark != len(committed) or log.batches != committed[log.log_start_offset :]:
                return False
        return True

    def _state(self) -> str:
        lines = [f"{state}" for state in self._checks.states.values()]
        for machine in self._machines.values():
            for id_, partition in {} if machine.broker is None else machine.broker.partitions.items():
                lines.append(
                    f"{machine.name} {id_}: leader {partition.leader} epoch {partition.leader_epoch} version "
                    f"{partition.version}, {partition.high_watermark} of {partition.log.log_end_offset} "
                    f"committed, {partition.leadership}"
                )
        return "\n".join(lines)
