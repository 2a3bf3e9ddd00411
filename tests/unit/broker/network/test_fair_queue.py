"""Turns of connections: who works at once, who waits, and for how long at most."""

from collections import deque
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from headrace.broker.network.fair_queue import QUANTUM_S, FairQueue


class Loop:
    """An event loop that runs what is due in an iteration."""

    def __init__(self) -> None:
        self._soon: deque[Callable[[], None]] = deque()
        self.fair_queue = FairQueue(self._soon.append)

    def iterate(self) -> None:
        for _ in range(len(self._soon)):
            self._soon.popleft()()

    @property
    def is_idle(self) -> bool:
        return not self._soon


class Client:
    """A connection with requests of `cost` quanta each."""

    def __init__(self, loop: Loop, cost: float = 1.0, *, is_open: bool = True) -> None:
        self._fair_queue = loop.fair_queue
        self._cost_s = cost * QUANTUM_S
        self._waits = False
        self._is_open = is_open
        self.turn_round, self.turn_used_s = 0, 0.0
        self.arrived = self.handled = 0

    def send(self, requests: int = 1) -> None:
        """Have requests arrive: they are handled now, or when it is this connection's turn."""
        self.arrived += requests
        if self._waits:
            return
        if self._fair_queue.has_turn(self):
            self._work()
        else:
            self._wait()

    def take_turn(self) -> bool:
        self._waits = False
        self._work()
        return self._is_open

    def _work(self) -> None:
        used_s = 0.0
        while self._is_open and self.arrived > self.handled and used_s < QUANTUM_S:
            self.handled += 1
            used_s += self._cost_s
        self._fair_queue.charge(self, used_s)
        if self._is_open and self.arrived > self.handled:
            self._wait()

    def _wait(self) -> None:
        self._waits = True
        self._fair_queue.wait(self)


def test_a_connection_works_at_once_if_nobody_else_does() -> None:
    loop = Loop()
    client = Client(loop, cost=0.1)
    for _ in range(5):
        client.send()

    assert client.handled == 5
    assert loop.is_idle


def test_an_iteration_handles_one_quantum_of_greedy_connections() -> None:
    loop = Loop()
    greedy = [Client(loop, cost=2.0) for _ in range(10)]
    for each in greedy:
        each.send(100)
    before = sum(each.handled for each in greedy)
    loop.iterate()

    assert sum(each.handled for each in greedy) == before + 1


def test_greedy_connections_take_turns() -> None:
    loop = Loop()
    greedy = [Client(loop) for _ in range(4)]
    for each in greedy:
        each.send(100)
    for _ in range(4 * 10):
        loop.iterate()

    counts = [each.handled for each in greedy]
    assert max(counts) - min(counts) <= 1, counts


def test_a_connection_that_uses_little_does_not_wait_for_greedy_ones() -> None:
    loop = Loop()
    greedy = [Client(loop) for _ in range(16)]
    modest = Client(loop, cost=0.2)
    for each in greedy:
        each.send(1000)
    for _ in range(100):
        loop.iterate()
        if loop.fair_queue._round != modest.turn_round:
            modest.send()
        assert modest.handled == modest.arrived


def test_a_connection_that_uses_its_quantum_waits_for_the_others() -> None:
    loop = Loop()
    greedy = [Client(loop) for _ in range(4)]
    for each in greedy:
        each.send(1000)
    other = Client(loop, cost=0.5)
    other.send(2)
    assert other.handled == 2

    other.send()

    assert other.handled == 2
    for _ in range(len(greedy) + 1):
        loop.iterate()
    assert other.handled == 3


def test_closed_connections_take_no_time() -> None:
    loop = Loop()
    greedy = Client(loop)
    greedy.send(3)
    for _ in range(50):
        loop.fair_queue.wait(Client(loop, is_open=False))
    last = Client(loop)
    loop.fair_queue.wait(last)
    last.arrived = 1
    loop.iterate()
    loop.iterate()

    assert last.handled == 1


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 20), st.booleans()), max_size=60),
    st.lists(st.floats(0.01, 3.0), min_size=5, max_size=5),
)
def test_every_request_is_handled_in_the_end(
    arrivals: list[tuple[int, int, bool]], costs: list[float]
) -> None:
    loop = Loop()
    clients = [Client(loop, cost) for cost in costs]
    for number, requests, then_iterate in arrivals:
        clients[number].send(requests)
        if then_iterate:
            loop.iterate()
    for _ in range(60 * 20 * 5):
        if loop.is_idle:
            break
        loop.iterate()

    assert loop.is_idle
    assert [each.handled for each in clients] == [each.arrived for each in clients]
