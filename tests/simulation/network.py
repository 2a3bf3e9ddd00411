"""A network of machines: connections like TCP's, that are slow, break, fall silent and come apart.

Within one connection nothing is lost, doubled or overtaken while it lasts. When it breaks, whoever sent last
does not know what has arrived. Where a way is blocked nothing gets through, in that direction, and nobody is
told; when it is free again, what waited arrives or the connection turns out to be broken. A way may also
refuse connections although the process at its end is alive, as a firewall does: those that are made in that
direction fail at once, and those that were made are reset.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator
from typing import Any

from simulation.process import Process
from simulation.world import World

CONNECT_TIMEOUT_S = 3.0
_STALLED_S = 0.7  # how long a message takes at most that takes long
_LATE_S = 4.0  # how long a request takes at most that arrives after its connection has broken
_REMEMBERED = 64  # connections, before those that are over are forgotten

Way = tuple[str, str]
"""From one machine to another."""


class Unreachable(Exception):
    """No connection can be had."""


class Host:
    """A machine with a name, and at most one process that listens."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_up = True
        self.listener: Process | None = None
        self.accept: Callable[[End], object] = lambda _end: None


class End:
    """One end of a connection. `receive` and `lost` are its owner's, and called in the owner's process."""

    def __init__(self, network: "Network", process: Process) -> None:
        self.process = process
        self.host = process.host
        self.is_open = True
        self.is_cut = False  # nothing that is sent gets through any more, and nobody knows yet
        self.is_dropping = False  # nor what is under way
        self.receive: Callable[[Any], None] = lambda _message: None
        self.lost: Callable[[], None] = lambda: None
        self.other: End
        self.held: list[object] = []  # what arrived where the way was blocked
        self.arrives_s = 0.0  # when the last message under way to this end does
        self.slowness = 1.0  # of this connection, compared with others
        self._network = network

    def send(self, message: object) -> None:
        """Have the other end receive `message`, unless the connection breaks first."""
        if self.is_open:
            self._network.send(self.other, message)

    def close(self) -> None:
        """End the connection; what is under way to the other end arrives first, if it can."""
        if self.is_open:
            self.is_open = False
            self._network.closed(self)


class Network:
    """Who can reach whom, and how fast."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.hosts: dict[str, Host] = {}
        self.blocked: set[Way] = set()
        self.refusing: set[Way] = set()  # from who connects to who is connected to
        self.slowness_s = 0.002
        self.slownesses: tuple[float, ...] = (1.0,)  # one of which a new connection has
        self.stalls = 0.0  # how likely a message is to take long
        self.breaks = 0.0  # how likely a message is to break its connection
        self.late: dict[type, float] = {}  # how likely requests are to arrive after their connection broke
        self._near: list[End] = []  # the asking ends of connections

    def host(self, name: str) -> Host:
        host = self.hosts[name] = Host(name)
        return host

    def delay_s(self) -> float:
        chance = self._world.random.random
        if self.stalls and chance() < self.stalls:
            return chance() * _STALLED_S
        return self.slowness_s * (0.1 + chance() * chance() * 3)

    def calm_down(self) -> None:
        """Nothing is blocked, slow or breaks from now on."""
        self.stalls = self.breaks = 0.0
        self.late = {}
        self.slownesses = (1.0,)
        for end in self._ends():
            end.slowness = 1.0
        self.refusing.clear()
        self.unblock(sorted(self.blocked))

    # -- connections ---------------------------------------------------------------------------

    async def connect(self, process: Process, target: str) -> End:
        """The near end of a new connection from `process`; Unreachable if there is none to be had."""
        await asyncio.sleep(self.delay_s())
        server = self.hosts[target]
        if not self._is_clear(process.host, server):
            await asyncio.sleep(CONNECT_TIMEOUT_S)
            if not self._is_clear(process.host, server):
                raise Unreachable(f"{target} does not answer")
        await asyncio.sleep(self.delay_s())
        listener = server.listener
        if listener is None or not listener.is_alive or (process.host.name, target) in self.refusing:
            raise Unreachable(f"{target} refuses connections")
        near, far = End(self, process), End(self, listener)
        near.other, far.other = far, near
        near.slowness = far.slowness = self._world.random.choice(self.slownesses)
        if len(self._near) > _REMEMBERED:
            self._near = [end for end in self._near if end.is_open or end.other.is_open]
        self._near.append(near)
        listener.call(server.accept, far)
        return near

    def _is_clear(self, one: Host, other: Host) -> bool:
        ways = {(one.name, other.name), (other.name, one.name)}
        return other.is_up and self.blocked.isdisjoint(ways)

    def send(self, end: End, message: object) -> None:
        """Bring `message` to `end`, after everything that was sent to it before."""
        if end.is_cut:
            return
        if self.late and self._is_late(message):
            end.arrives_s = max(end.arrives_s, self._world.now) + self._world.random.random() * _LATE_S
            end.process.call_at(end.arrives_s, self._arrive, end, message)
            self._break(end, drops=False)
        elif self.breaks and self._world.random.random() < self.breaks:
            self._break(end)
        else:
            self._bring(end, message)

    def _is_late(self, message: object) -> bool:
        """Whether a request arrives much later, when its sender believes that the connection has broken."""
        request = message[0] if isinstance(message, tuple) and message else None
        likelihood = self.late.get(type(request), 0.0)
        return bool(likelihood) and self._world.random.random() < likelihood

    def _bring(self, end: End, message: object) -> None:
        end.arrives_s = max(end.arrives_s, self._world.now + self.delay_s() * end.slowness)
        end.process.call_at(end.arrives_s, self._arrive, end, message)

    def _arrive(self, end: End, message: object) -> None:
        if not end.is_open or end.is_dropping or not end.host.is_up:
            return
        if end.held or self._is_held_up(end):
            end.held.append(message)
        elif message is _END:
            self._reset(end)
        else:
            end.receive(message)

    def _is_held_up(self, end: End) -> bool:
        return (end.other.host.name, end.host.name) in self.blocked

    def closed(self, end: End) -> None:
        """`end` has been closed: the other one learns of it after all that was sent before."""
        if end.other.is_open:
            self._bring(end.other, _END)

    def _break(self, end: End, *, drops: bool | None = None) -> None:
        """The connection is reset: both ends learn of it, each in its own time.

        What is under way is lost, or it arrives, when whoever sent it may be talking on another connection.
        `drops` says which, for what is under way to `end`.
        """
        for each in (end, end.other):
            each.is_cut = True
            is_known = drops is not None and each is end
            each.is_dropping = bool(drops) if is_known else self._world.random.random() < 0.5
            last_s = self._world.now if each.is_dropping else max(self._world.now, each.arrives_s)
            each.process.call_at(last_s + self.delay_s(), self._reset, each)

    def _reset(self, end: End) -> None:
        if end.is_open:
            end.is_open = False
            end.lost()

    # -- machines and ways ---------------------------------------------------------------------

    def _ends(self) -> Iterator[End]:
        for near in self._near:
            yield near
            yield near.other

    def process_ended(self, process: Process, *, silently: bool) -> None:
        """A process is gone. Its machine says so to whoever was connected, unless that has gone, too."""
        for end in self._ends():
            if end.process is process and end.is_open:
                end.is_open = False
                if not silently:
                    self._bring(end.other, _END)

    def stop_serving(self, process: Process) -> None:
        """Close the connections that `process` has accepted; those that it has made stay open."""
        for near in self._near:
            if near.other.process is process:
                near.other.close()

    def machine_is_back(self, host: Host) -> None:
        """Connections from before are news to it: whoever still has one is told so."""
        for end in self._ends():
            if end.is_open and not end.other.is_open and end.other.host is host:
                end.process.call(self._reset, end, after_s=self.delay_s())

    def block(self, ways: Collection[Way]) -> None:
        self.blocked.update(ways)

    def refuse(self, ways: Collection[Way]) -> None:
        """Have connections in these directions refused from now on, and reset those there are."""
        self.refusing.update(ways)
        for near in self._near:
            if near.is_open and (near.host.name, near.other.host.name) in self.refusing:
                self._break(near)

    def accept(self, ways: Collection[Way]) -> None:
        """Let connections in these directions through again."""
        self.refusing.difference_update(ways)

    def unblock(self, ways: Collection[Way]) -> None:
        """Free these ways: what waited arrives, or what it waited in turns out to be broken."""
        self.blocked.difference_update(ways)
        for end in self._ends():
            if end.held and not self._is_held_up(end):
                if self._world.random.random() < 0.5:
                    self._break(end)
                else:
                    end.process.call(self._take_held, end, after_s=self.delay_s())

    def _take_held(self, end: End) -> None:
        held, end.held = end.held, []
        for message in held:
            self._arrive(end, message)


_END = object()
