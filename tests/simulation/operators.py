"""What operators ask for at the worst of times: moves, cancelled moves, other leaders, fewer records."""

from collections.abc import Awaitable, Callable

from headrace.coordination.errors import CoordinationError
from headrace.protocol.errors import KafkaError
from headrace.protocol.ids import TopicPartition
from headrace.replication.controller.model import Changes, ClusterModel
from headrace.replication.controller.runner import Controller
from headrace.storage.topics import INTERNAL_TOPICS
from simulation.broker import SimBroker
from simulation.machine import Machine
from simulation.process import Process
from simulation.world import World

REPLICAS = 3


class Operators:
    """They ask whoever is the controller at that moment; what comes of it they do not wait for."""

    def __init__(
        self, world: World, process: Process, machines: list[Machine], ids: list[TopicPartition]
    ) -> None:
        self._world = world
        self._process = process
        self._machines = machines
        self._ids = ids

    def move(self) -> None:
        """Have a partition move to other brokers, or stop moving; perhaps somebody soon wants it back."""
        chance = self._world.random
        id_, target = chance.choice(self._ids), self._any_brokers()
        self._move(id_, target if chance.random() < 0.7 else None)
        if chance.random() < 0.5:
            away_s = chance.random()
            back_s = away_s + chance.random() * 0.5
            self._process.call(self._move, id_, self._any_brokers(), after_s=away_s)
            self._process.call(self._move, id_, target, after_s=back_s)

    def _any_brokers(self) -> list[int]:
        return self._world.random.sample([machine.broker_id for machine in self._machines], REPLICAS)

    def _move(self, id_: TopicPartition, target: list[int] | None) -> None:
        self._world.say("", "%s is to move to %s", id_, target)
        self._change(lambda model: model.reassign(TopicPartition(*id_), target))

    def prefer(self) -> None:
        id_ = self._world.random.choice(self._ids)
        self._change(lambda model: model.prefer(TopicPartition(*id_)))

    def delete_records(self) -> None:
        """Have a leader drop some of what is committed."""
        id_, share = self._world.random.choice(self._ids), self._world.random.random()
        if id_.topic in INTERNAL_TOPICS:
            return  # they are compacted, and brokers refuse DeleteRecords for them
        for machine in self._machines:
            if machine.broker is not None and machine.process is not None:
                machine.process.call(_delete_records, machine.broker, id_, share)

    def _change(self, decide: Callable[[ClusterModel], Changes]) -> None:
        for machine in self._machines:
            controller = None if machine.broker is None else machine.broker.controller
            if controller is not None and machine.process is not None:
                machine.process.run(_try(controller, decide))
                return


async def _try(controller: Controller, decide: Callable[[ClusterModel], Changes]) -> None:
    change: Awaitable[Changes] = controller.change(decide)
    try:
        await change
    except (KafkaError, CoordinationError):
        return


def _delete_records(broker: SimBroker, id_: TopicPartition, share: float) -> None:
    partition = broker.partitions.get(id_)
    if partition is not None and partition.leadership is not None:
        partition.log.delete_records_before(int(partition.high_watermark * share))
