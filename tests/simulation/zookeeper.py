"""ZooKeeper as its clients see it: one order of all changes, sessions that expire, watches that come late."""

from collections.abc import Callable
from typing import Any, NamedTuple

from headrace.coordination.session import Conflict
from simulation.network import End, Network
from simulation.process import Process
from simulation.world import World
from simulation.znodes import Tree, Watch

HOST = "zk"


class Hello(NamedTuple):
    session_id: int  # 0: a new one
    timeout_s: float


class Call(NamedTuple):
    """Something to do on the tree, in one step."""

    number: int
    work: Callable[[Tree, int], Any]


class Ping(NamedTuple):
    pass


class Bye(NamedTuple):
    """The session is over, and this is its owner's wish."""


class Welcome(NamedTuple):
    session_id: int


class Expired(NamedTuple):
    pass


class Done(NamedTuple):
    number: int
    result: Any
    error: Exception | None


class Fired(NamedTuple):
    number: int


class _Session:
    def __init__(self, session_id: int, timeout_s: float, now: float) -> None:
        self.id = session_id
        self.timeout_s = timeout_s
        self.heard = now
        self.end: End | None = None


class ZooKeeper:
    """The server: a process that is there all the time, though it may be stopped for a while."""

    def __init__(self, world: World, network: Network) -> None:
        self._world = world
        host = network.host(HOST)
        self.process = host.listener = Process(world, network, host)
        host.accept = self._accept
        self.tree = Tree(self._fired)
        self._sessions: dict[int, _Session] = {}
        self._last_id = 0

    def _accept(self, end: End) -> None:
        session: _Session | None = None

        def receive(message: object) -> None:
            nonlocal session
            if isinstance(message, Hello):
                session = self._hello(message, end)
            elif session is not None and session.id in self._sessions:
                session.heard = self._world.now
                self._serve(session, message, end)

        end.receive = receive

    def _hello(self, hello: Hello, end: End) -> _Session | None:
        session = self._sessions.get(hello.session_id)
        if hello.session_id and session is None:
            end.send(Expired())
            return None
        if session is None:
            self._last_id += 1
            session = self._sessions[self._last_id] = _Session(
                self._last_id, hello.timeout_s, self._world.now
            )
            self._watch_session(session)
        if session.end is not None:
            session.end.close()
        self.tree.forget_watches(session.id)
        session.end, session.heard = end, self._world.now
        end.send(Welcome(session.id))
        return session

    def _serve(self, session: _Session, message: object, end: End) -> None:
        match message:
            case Call(number, work):
                try:
                    result, error = work(self.tree, session.id), None
                except Conflict as failure:
                    result, error = None, failure
                end.send(Done(number, result, error))
            case Ping():
                end.send(Ping())
            case Bye():
                self.expire(session.id)

    # -- sessions ------------------------------------------------------------------------------

    def _watch_session(self, session: _Session) -> None:
        left = session.heard + session.timeout_s - self._world.now
        if left <= 0:
            self.expire(session.id)
        elif session.id in self._sessions:
            self.process.call(self._watch_session, session, after_s=left + 0.001)

    def expire(self, session_id: int) -> None:
        """End a session: what is ephemeral goes with it."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._world.say("zk", "session %d is over", session_id)
            self.tree.end_session(session_id)
            self.tree.forget_watches(session_id)
            if session.end is not None:
                session.end.close()

    def resume(self) -> None:
        """Go on after a stop: every session has a whole timeout again, as after an election of theirs."""
        for session in self._sessions.values():
            session.heard = self._world.now
        self.process.resume()

    def _fired(self, watch: Watch) -> None:
        session = self._sessions.get(watch[0])
        if session is not None and session.end is not None:
            session.end.send(Fired(watch[1]))
