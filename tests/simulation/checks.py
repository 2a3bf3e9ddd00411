"""What must hold after every step, of every broker and of what is written in ZooKeeper."""

import re
from collections.abc import Sequence
from functools import partial

from headrace.broker.replicas.partition import Partition
from headrace.coordination.session import Znode
from headrace.coordination.znodes import ControllerEpoch, PartitionState, TopicAssignment, topic_path
from headrace.protocol.ids import TopicPartition
from simulation.broker import MIN_INSYNC_REPLICAS
from simulation.ledger import Ledger, Place
from simulation.log import SimLog
from simulation.machine import Machine
from simulation.world import Violation, World
from simulation.zookeeper import ZooKeeper

_STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")


class _Seen:
    """A replica at the last look."""

    __slots__ = ("changes", "high_watermark", "leader_epoch", "leads", "partition")

    def __init__(self, partition: Partition, log: SimLog) -> None:
        self.partition = partition
        self.high_watermark = partition.high_watermark
        self.changes = log.changes
        self.leader_epoch = partition.leader_epoch
        self.leads = partition.leadership is not None

    def is_as(self, partition: Partition, log: SimLog) -> bool:
        return (
            self.high_watermark == partition.high_watermark
            and self.changes == log.changes
            and self.leader_epoch == partition.leader_epoch
            and self.leads == (partition.leadership is not None)
            and self.partition is partition
        )


class Checks:
    """Looks at a broker after each of its steps, and at every znode that is written."""

    def __init__(
        self,
        world: World,
        zookeeper: ZooKeeper,
        machines: dict[int, Machine],
        ids: list[TopicPartition],
        *,
        unclean_allowed: bool,
    ) -> None:
        self.states: dict[TopicPartition, PartitionState] = {}
        self.ledgers = {
            id_: Ledger(
                str(id_),
                machines,
                partial(_log, machines, id_),
                MIN_INSYNC_REPLICAS,
                partial(self._replicas_of, id_),
            )
            for id_ in ids
        }
        self._world = world
        self._zookeeper = zookeeper
        self._machines = machines
        self.unclean_allowed = unclean_allowed
        self._topics = {topic_path(id_.topic): id_.topic for id_ in ids}
        self._replicas: dict[TopicPartition, Sequence[int]] = {}
        self._expired_until: dict[int, float] = {}  # brokers whose sessions were ended before their time
        self._seen: dict[tuple[int, TopicPartition], _Seen] = {}
        zookeeper.tree.on_change = self._written

    # -- brokers -------------------------------------------------------------------------------

    def look(self, machine: Machine) -> None:
        """At all replicas of a broker, after a step of it."""
        if machine.broker is None:
            return
        for id_, partition in machine.broker.partitions.items():
            log = machine.disk.logs[id_]
            before = self._seen.get((machine.broker_id, id_))
            if before is None or not before.is_as(partition, log):
                now = self._seen[machine.broker_id, id_] = _Seen(partition, log)
                self._check(machine, id_, before, now)

    def _check(self, machine: Machine, id_: TopicPartition, before: _Seen | None, now: _Seen) -> None:
        ledger, log = self.ledgers[id_], machine.disk.logs[id_]
        self._tell(machine.name, id_, now, log)
        if now.leads:
            ledger.leads(now.leader_epoch, Place(machine.broker_id, machine.lives), log)
        if now.high_watermark > log.log_end_offset:
            raise Violation(
                f"{id_}: {machine.name} has {now.high_watermark} of {log.log_end_offset} committed"
            )
        stale_from = ledger.stale.get(machine.broker_id)
        if stale_from is not None:
            if log.log_end_offset > stale_from:
                return  # it has not heard yet that all this is lost
            del ledger.stale[machine.broker_id]
            before = None
        first = log.log_start_offset
        if before is not None and before.partition is now.partition:
            if now.high_watermark < before.high_watermark:
                raise Violation(
                    f"{id_}: the high watermark of {machine.name} goes back from {before.high_watermark} "
                    f"to {now.high_watermark}"
                )
            first = max(first, before.high_watermark)
        ledger.check_committed(machine.name, log, range(first, now.high_watermark))

    def _tell(self, who: str, id_: TopicPartition, now: _Seen, log: SimLog) -> None:
        if self._world.is_traced:
            role = "leads" if now.leads else f"follows {now.partition.leader}"
            committed = f"{now.high_watermark} of {log.log_end_offset} committed"
            self._world.say(who, "%s: %s in epoch %d, %s", id_, role, now.leader_epoch, committed)

    def serves(self, machine: Machine, partition: Partition) -> None:
        """A broker takes a write with acks=1, or answers for a partition: nobody else may lead it by then."""
        state = self.states.get(partition.id)
        if state is None or state.leader == machine.broker_id:
            return
        if self._world.now >= self._expired_until.get(machine.broker_id, 0.0):
            raise Violation(
                f"{partition.id}: {machine.name} serves in epoch {partition.leader_epoch} although broker "
                f"{state.leader} leads in epoch {state.leader_epoch}"
            )

    def session_ended_early(self, broker_id: int, lease_s: float) -> None:
        """A session was ended while its owner rightly believes in it; ZooKeeper never does that by itself."""
        self._expired_until[broker_id] = self._world.now + lease_s

    # -- what is written -----------------------------------------------------------------------

    def _written(self, path: str, node: Znode | None, session: int) -> None:
        self._world.say("zk", "session %d: %s %s", session, path, "is gone" if node is None else node.data)
        if node is None:
            return
        if path in self._topics:
            self._assigned(TopicAssignment.decode(self._topics[path], node.data))
        match = _STATE.fullmatch(path)
        if match is not None:
            self._state_written(TopicPartition(match[1], int(match[2])), node)

    def _state_written(self, id_: TopicPartition, node: Znode) -> None:
        new = PartitionState.decode(id_.topic, id_.partition, node.data, version=node.version)
        old = self.states.get(id_)
        self.states[id_] = new
        current = self._zookeeper.tree.get(ControllerEpoch.path)
        if current is not None and ControllerEpoch.decode(current.data).epoch != new.controller_epoch:
            raise Violation(f"{id_}: a controller of epoch {new.controller_epoch} writes, which is past")
        if new.leader != -1 and new.leader not in new.isr:
            raise Violation(f"{id_}: {new.leader} leads and is not in sync: {new}")
        self._check_places(id_, new)
        if old is None:
            self.ledgers[id_].may_lead((*new.isr, *new.elr))
        else:
            self._check_change(id_, old, new)

    def _assigned(self, assignment: TopicAssignment) -> None:
        """Who has replicas has been written, after the states that go with it."""
        for index, replicas in assignment.replicas.items():
            id_ = TopicPartition(assignment.topic, index)
            self._replicas[id_] = replicas
            if id_ in self.states:
                self._check_places(id_, self.states[id_])

    def _check_places(self, id_: TopicPartition, state: PartitionState) -> None:
        if not {*state.isr, *state.elr} <= set(self._replicas[id_]):
            raise Violation(f"{id_}: not all have replicas that may lead: {state}, {self._replicas[id_]}")

    def _check_change(self, id_: TopicPartition, old: PartitionState, new: PartitionState) -> None:
        ledger, eligible = self.ledgers[id_], {*old.isr, *old.elr}
        if new.version <= old.version or new.leader_epoch < old.leader_epoch:
            raise Violation(f"{id_}: {new} is written over {old}")
        if new.leader != old.leader:
            self._check_replaced(id_, old)
        if new.leader not in {-1, old.leader} and new.leader_epoch == old.leader_epoch:
            raise Violation(f"{id_}: {new.leader} leads after {old.leader} in the same epoch")
        # One that comes into sync with the proposal that ends its move may lead at once. It is not alone.
        # If those that are eligible may have lost records, all replicas are compared.
        may_lead = self.unclean_allowed or old.in_doubt
        if new.leader not in eligible and list(new.isr) == [new.leader] and not may_lead:
            raise Violation(f"{id_}: {new.leader} leads, which was not eligible: {old}")
        if self.unclean_allowed and (
            new.leader not in eligible - ledger.suspects.keys() or ledger.awaits_unclean_leader
        ):
            ledger.unclean.add(new.leader_epoch)
        for each in set(new.isr) - set(old.isr):
            if each == new.leader and (each in old.elr or old.in_doubt):
                continue  # it was elected for what it had before, and has caught up with nobody
            if new.broker_epochs[each] > ledger.suspects.get(each, 0):  # not what it had before is in sync
                ledger.suspects.pop(each, None)
        ledger.may_lead((*new.isr, *new.elr), compared=new.leader if old.in_doubt else None)

    def _check_replaced(self, id_: TopicPartition, old: PartitionState) -> None:
        """Whoever is replaced must not be able to take a write any more: by its lease, or by its word."""
        machine = self._machines.get(old.leader)
        broker = None if machine is None or machine.host.listener is None else machine.broker
        partition = None if broker is None else broker.partitions.get(id_)
        if broker is None or partition is None or partition.leadership is None:
            return  # a broker that stops has closed its clients' connections before it ends its session
        if self._world.now >= self._expired_until.get(old.leader, 0.0) and broker.holds_lease(partition):
            raise Violation(f"{id_}: broker {old.leader} is replaced while it serves in {old}")

    def _replicas_of(self, id_: TopicPartition) -> Sequence[int]:
        return self._replicas[id_]

    def power_cut(self, machine: Machine) -> None:
        """A machine has just lost power, and had not been stopped cleanly."""
        for ledger in self.ledgers.values():
            ledger.power_cut(machine.broker_id, self._zookeeper.tree.zxid)


def _log(machines: dict[int, Machine], id_: TopicPartition, broker_id: int) -> SimLog | None:
    return machines[broker_id].disk.logs.get(id_)
