"""A machine with a broker on it: what an operator, a signal or a power cut does to it."""

from collections.abc import Callable
from functools import partial

from headrace.broker.errors import StartRefused
from headrace.broker.replicas.partition import Partition
from headrace.coordination.errors import CoordinationError
from simulation.broker import SimBroker
from simulation.disk import SimDisk
from simulation.exits import identify
from simulation.network import Network
from simulation.process import Process
from simulation.world import World

_RESTART_S = 0.5  # after which a supervisor starts a broker again that could not start


class Machine:
    """Its disk stays; its process comes and goes."""

    def __init__(self, world: World, network: Network, broker_id: int) -> None:
        self._world = world
        self._network = network
        self.broker_id = broker_id
        self.name = f"b{broker_id}"
        self.host = network.host(self.name)
        self.disk = SimDisk(world.random)
        self.process: Process | None = None
        self.broker: SimBroker | None = None
        self.lives = 0
        self.is_stopping = False
        self.is_silent = False
        self.node: str | None = None  # brokers of one node share a file system
        self.exits_are_provable = False  # to the other brokers, as on one machine
        self.on_serving: Callable[[Machine, Partition], None] = lambda _machine, _partition: None
        self.on_step: Callable[[Machine], None] = lambda _machine: None
        self._supervisor = Process(world, network, self.host)

    def start(self) -> None:
        """Start the broker, unless it runs; if it cannot, it is started again."""
        if self.process is not None or not self.host.is_up:
            return
        self.lives += 1
        self._world.say(self.name, "starts, life %d", self.lives)
        self.process = Process(self._world, self._network, self.host)
        self.process.on_step = partial(self.on_step, self)
        self.broker = SimBroker(self.broker_id, self.process, self.disk, self.node)
        self.broker.is_silent = self.is_silent
        self.broker.on_serving = partial(self.on_serving, self)
        identify(self.process, pid=self.broker_id, life=self.lives, is_provable=self.exits_are_provable)
        self.process.run(self._live(self.process, self.broker))

    async def _live(self, process: Process, broker: SimBroker) -> None:
        try:
            await broker.start()
        except (StartRefused, CoordinationError) as error:
            self._world.say(self.name, "does not start: %s", error)
            if process is self.process:
                self._end(silently=False)
                self._supervisor.call(self.start, after_s=_RESTART_S)

    def answer_all(self) -> None:
        """Tell controllers from now on how far the logs go."""
        self.is_silent = False
        if self.broker is not None:
            self.broker.is_silent = False

    @property
    def is_ready(self) -> bool:
        return self.broker is not None and self.broker.ready.is_set()

    def check_tasks(self) -> None:
        """Crash if anything in the broker has ended that should go on."""
        if self.process is not None:
            self.process.check_tasks()

    def kill(self) -> None:
        """Kill -9."""
        if self.process is not None:
            self._world.say(self.name, "is killed")
            self._end(silently=False)

    def _end(self, *, silently: bool) -> None:
        assert self.process is not None
        self.process.kill()
        self.host.listener = None
        self._network.process_ended(self.process, silently=silently)
        self.process = self.broker = None
        self.is_stopping = False

    def stop(self) -> None:
        """Stop cleanly, as on SIGTERM; one that has not started yet is killed."""
        if self.process is None or self.broker is None or self.is_stopping:
            return
        if not self.broker.ready.is_set():
            self.kill()
            return
        self._world.say(self.name, "is asked to stop")
        self.is_stopping = True
        self.process.run(self._leave(self.process, self.broker))

    async def _leave(self, process: Process, broker: SimBroker) -> None:
        await broker.stop()
        if process is self.process:
            self._world.say(self.name, "has stopped")
            self._end(silently=False)

    def power_cut(self) -> None:
        """The machine goes down: nobody is told, and what was not flushed is gone, or some of it."""
        self._world.say(self.name, "loses power")
        self.host.is_up = False
        if self.process is not None:
            self._end(silently=True)
        self.disk.power_cut()

    def boot(self) -> None:
        if not self.host.is_up:
            self._world.say(self.name, "has power again")
            self.host.is_up = True
            self._network.machine_is_back(self.host)

    def pause(self) -> None:
        if self.process is not None and not self.process.is_paused:
            self.process.pause()

    def resume(self) -> None:
        if self.process is not None and self.process.is_paused:
            self.process.resume()
