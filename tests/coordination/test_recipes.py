"""kazoo's recipes, which brokers and others build on."""

import threading
from typing import Any

from kazoo.client import KazooClient

from coordination.conftest import WAIT_S, Connect, Server, wait_until


def test_a_lock_has_one_holder_at_a_time(connect: Connect) -> None:
    holders = 0
    most = 0
    entries = []

    def work(number: int) -> None:
        nonlocal holders, most
        lock = connect().Lock("/lock", str(number))
        for _ in range(5):
            with lock:
                holders += 1
                most = max(most, holders)
                entries.append(number)
                holders -= 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)

    assert most == 1
    assert sorted(entries) == sorted(list(range(4)) * 5)


def test_a_lock_passes_on_when_its_holder_dies(connect: Connect) -> None:
    holder, heir = connect(), connect()
    assert holder.Lock("/lock", "holder").acquire()
    taken = threading.Event()

    def take() -> None:
        heir.Lock("/lock", "heir").acquire()
        taken.set()

    thread = threading.Thread(target=take)
    thread.start()
    wait_until(lambda: len(heir.get_children("/lock")) == 2)
    assert not taken.is_set()
    holder.stop()

    assert taken.wait(WAIT_S)
    thread.join(WAIT_S)


def test_an_election_has_one_winner_and_then_the_next(connect: Connect) -> None:
    led: list[str] = []
    clients = {name: connect() for name in ("a", "b", "c")}
    elections = {name: client.Election("/election", name) for name, client in clients.items()}
    resign = {name: threading.Event() for name in clients}

    def lead(name: str) -> None:
        led.append(name)
        resign[name].wait(WAIT_S)

    threads = [threading.Thread(target=each.run, args=(lead, name)) for name, each in elections.items()]
    for thread in threads:
        thread.start()
    for expected in (1, 2, 3):
        wait_until(lambda expected=expected: len(led) == expected)  # type: ignore[misc]
        assert elections[led[-1]].contenders()[0] == led[-1]
        resign[led[-1]].set()
    for thread in threads:
        thread.join(WAIT_S)

    assert sorted(led) == ["a", "b", "c"]


def test_watchers_follow_every_change(zk: Any, connect: Connect) -> None:
    other = connect()
    zk.create("/a", b"0")
    seen: list[bytes] = []
    children: list[list[str]] = []
    zk.DataWatch("/a", lambda data, _stat: seen.append(data))
    zk.ChildrenWatch("/a", lambda names: children.append(sorted(names)))
    other.set("/a", b"1")
    wait_until(lambda: seen[-1] == b"1")
    other.create("/a/x")
    wait_until(lambda: children[-1] == ["x"])
    other.create("/a/y")
    wait_until(lambda: children[-1] == ["x", "y"])

    assert seen == [b"0", b"1"]


def test_counter_queue_and_party(connect: Connect) -> None:
    first, second = connect(), connect()
    counter = first.Counter("/counter")
    counter += 3
    assert second.Counter("/counter").value == 3
    queue = first.Queue("/queue")
    queue.put(b"low", priority=200)
    queue.put(b"high", priority=1)
    assert [second.Queue("/queue").get(), second.Queue("/queue").get()] == [b"high", b"low"]
    first.Party("/party", "ann").join()
    second.Party("/party", "bob").join()
    assert sorted(first.Party("/party")) == ["ann", "bob"]


def test_a_chroot_is_a_tree_of_its_own(server: Server, zk: Any, namespace: str) -> None:
    zk.create("/trunk")
    below = KazooClient(f"{server.address}{namespace}/trunk")
    below.start(WAIT_S)
    below.create("/leaf", b"x")
    heard: list[Any] = []
    below.get("/leaf", watch=heard.append)
    zk.set("/trunk/leaf", b"y")
    wait_until(lambda: heard)

    assert heard[0].path == "/leaf"
    assert below.create("/n-", sequence=True).startswith("/n-")
    below.stop()
    below.close()
