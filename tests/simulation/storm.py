"""What goes wrong: a storm of faults, drawn from the seed, that ends with everything whole again."""

from collections.abc import Callable

from headrace.coordination.session import Conflict, Delete
from headrace.coordination.znodes import Controller as ControllerZnode
from simulation.bank import STATES
from simulation.broker import SESSION_TIMEOUT_MS
from simulation.checks import Checks
from simulation.machine import Machine
from simulation.network import Network, Way
from simulation.operators import Operators
from simulation.process import Process
from simulation.world import World
from simulation.zookeeper import HOST, ZooKeeper

_LONGEST_S = 4.0  # that one fault lasts


class Storm:
    """Faults, one after another and several at a time, until it is over."""

    def __init__(
        self,
        world: World,
        network: Network,
        zookeeper: ZooKeeper,
        machines: dict[int, Machine],
        checks: Checks,
        *,
        power_cuts: int,
        restless: bool,
    ) -> None:
        self._world = world
        self._network = network
        self._zookeeper = zookeeper
        self._machines = list(machines.values())
        self._checks = checks
        self._power_cuts = power_cuts  # that are left
        self._process = Process(world, network, network.host("storm"))
        self._is_over = False
        operators = Operators(world, self._process, self._machines, list(checks.ledgers))
        usual: list[tuple[int, Callable[[], None]]] = [
            (5, self._kill),
            (3, self._pause),
            (2, self._stop),
            (2, self._cut_power),
            (3, self._part_brokers),
            (3, self._refuse),
            (2, self._part_from_zookeeper),
            (2, self._isolate),
            (2, self._expire),
            (1, self._stop_zookeeper),
            (1, self._depose),
            (2, operators.move),
            (1, operators.prefer),
            (1, operators.delete_records),
        ]
        if STATES in checks.ledgers:
            usual.append((4, self._strand_transaction_coordinator))
        # Every storm has its own mind: some things happen often in it, others not at all.
        self._blows = [(weight * world.random.choice((0, 1, 1, 5)), blow) for weight, blow in usual]
        self._blows.append((1, self._kill))
        if restless:  # partitions move all the time, and little else happens
            self._blows = [(8, operators.move), (1, operators.prefer), (1, self._kill)]

    def begin(self, after_s: float, *, blackout_after_s: float | None = None) -> None:
        self._process.call(self._blow, after_s=after_s)
        if blackout_after_s is not None:
            self._process.call(self.black_out, after_s=blackout_after_s)

    def end(self) -> None:
        """Everything is well again: machines run and answer, ways are free, nothing breaks."""
        self._is_over = True
        self._world.say("", "the storm is over")
        self._network.calm_down()
        self._resume_zookeeper()
        for machine in self._machines:
            machine.answer_all()
            machine.resume()
            machine.boot()
            self._start(machine)

    def _start(self, machine: Machine) -> None:
        if machine.is_stopping:
            self._process.call(self._start, machine, after_s=0.5)
        else:
            machine.start()

    def _blow(self) -> None:
        if not self._is_over:
            weights, blows = zip(*self._blows, strict=True)
            self._world.random.choices(blows, weights)[0]()
            self._process.call(self._blow, after_s=self._world.random.random() ** 2 * 2)

    def _later(self, function: Callable[..., None], *args: object, within_s: float = _LONGEST_S) -> None:
        self._process.call(function, *args, after_s=self._world.random.random() ** 2 * within_s)

    def _any(self) -> Machine:
        return self._world.random.choice(self._machines)

    # -- processes and machines ----------------------------------------------------------------

    def _kill(self) -> None:
        machine = self._any()
        machine.kill()
        self._later(machine.start)

    def _pause(self) -> None:
        machine = self._any()
        machine.pause()
        self._later(machine.resume)

    def _stop(self) -> None:
        machine = self._any()
        machine.stop()
        self._later(self._start, machine)

    def _cut_power(self) -> None:
        machine = self._any()
        if self._power_cuts and machine.host.is_up:
            self._power_cuts -= 1
            self._cut_power_of(machine)

    def black_out(self) -> None:
        """All machines lose power at once, and boot again in any order."""
        for machine in self._machines:
            if machine.host.is_up:
                self._cut_power_of(machine)

    def _cut_power_of(self, machine: Machine) -> None:
        was_clean = machine.disk.clean
        machine.power_cut()
        if not was_clean:
            self._checks.power_cut(machine)
        self._later(self._boot, machine)

    def _boot(self, machine: Machine) -> None:
        machine.boot()
        self._later(machine.start, within_s=1)

    # -- ways ----------------------------------------------------------------------------------

    def _block(self, ways: list[Way]) -> None:
        self._world.say("", "blocked: %s", ways)
        self._network.block(ways)
        self._later(self._unblock, ways)

    def _unblock(self, ways: list[Way]) -> None:
        self._world.say("", "free again: %s", ways)
        self._network.unblock(ways)

    def _ways(self, one: str, other: str) -> list[Way]:
        """Between two machines: both, or only one of them."""
        both = [(one, other), (other, one)]
        return self._world.random.choice((both, both, both[:1], both[1:]))

    def _part_brokers(self) -> None:
        one, other = self._world.random.sample(self._machines, 2)
        self._block(self._ways(one.name, other.name))

    def _refuse(self) -> None:
        """One broker refuses another's connections, or both do, although both are alive."""
        one, other = self._world.random.sample(self._machines, 2)
        ways = [(one.name, other.name)]
        if self._world.random.random() < 0.3:
            ways.append((other.name, one.name))
        self._world.say("", "connections are refused: %s", ways)
        self._network.refuse(ways)
        self._later(self._network.accept, ways)

    def _strand_transaction_coordinator(self) -> None:
        """The coordinator reaches everybody, and nobody can fetch what it appends; then it is killed."""
        state = self._checks.states.get(STATES)
        machine = next((each for each in self._machines if state and each.broker_id == state.leader), None)
        if machine is not None:
            ways = [(other.name, machine.name) for other in self._machines if other is not machine]
            self._world.say("", "connections are refused: %s", ways)
            self._network.refuse(ways)
            self._process.call(self._kill_stranded, machine, ways, after_s=self._world.random.random() * 1.5)

    def _kill_stranded(self, machine: Machine, ways: list[Way]) -> None:
        machine.kill()
        self._network.accept(ways)
        self._later(machine.start)

    def _part_from_zookeeper(self) -> None:
        self._block(self._ways(self._any().name, HOST))

    def _isolate(self) -> None:
        """One broker is alone, with or without ZooKeeper."""
        alone = self._any().name
        others = [machine.name for machine in self._machines if machine.name != alone]
        if self._world.random.random() < 0.5:
            others.append(HOST)
        self._block([way for other in others for way in ((alone, other), (other, alone))])

    # -- ZooKeeper -----------------------------------------------------------------------------

    def _expire(self) -> None:
        """A session ends although its owner is well."""
        broker = self._any().broker
        if broker is not None and hasattr(broker, "session"):
            self._checks.session_ended_early(broker.broker_id, SESSION_TIMEOUT_MS / 1000)
            self._zookeeper.expire(broker.session.session_id)

    def _stop_zookeeper(self) -> None:
        if not self._zookeeper.process.is_paused:
            self._zookeeper.process.pause()
            self._later(self._resume_zookeeper)

    def _resume_zookeeper(self) -> None:
        if self._zookeeper.process.is_paused:
            self._zookeeper.resume()

    def _depose(self) -> None:
        """Somebody who takes the controller for dead removes its znode."""
        try:
            self._zookeeper.tree.change([Delete(ControllerZnode.path)], 0)
        except Conflict:
            return
