"""Watches: told once, in order, before anything that shows the change."""

from queue import Queue
from typing import Any

from coordination.conftest import WAIT_S, Dial
from coordination.fakes import create_body, set_watches_body
from coordination.wire import event
from headrace.coordination.embedded.jute import INT, string

CREATE, EXISTS, GET, SET = 1, 3, 4, 5
CREATED, DELETED, CHANGED, CHILD = 1, 2, 3, 4


def test_each_kind_of_watch_hears_what_it_should(zk: Any, connect: Any) -> None:
    other, heard = connect(), Queue[Any]()
    zk.create("/a")
    assert zk.exists("/new", watch=heard.put) is None
    other.create("/new")
    assert heard.get(timeout=WAIT_S)[0::2] == ("CREATED", "/new")
    zk.get("/a", watch=heard.put)
    other.set("/a", b"1")
    assert heard.get(timeout=WAIT_S)[0::2] == ("CHANGED", "/a")
    zk.get_children("/a", watch=heard.put)
    other.create("/a/b")
    assert heard.get(timeout=WAIT_S)[0::2] == ("CHILD", "/a")
    zk.exists("/a/b", watch=heard.put)
    other.delete("/a/b")
    assert heard.get(timeout=WAIT_S)[0::2] == ("DELETED", "/a/b")
    assert heard.empty()


def test_a_watch_is_heard_once(zk: Any) -> None:
    heard: list[Any] = []
    zk.create("/a")
    zk.get("/a", watch=heard.append)
    for _ in range(5):
        zk.set("/a", b"")
    zk.sync("/a")

    assert len(heard) == 1


def test_the_event_comes_before_the_reply_of_the_write_that_caused_it(dial: Dial, namespace: str) -> None:
    wire = dial()
    wire.connect()
    path = string(f"{namespace}/a")
    wire.ask(CREATE, create_body(f"{namespace}/a"))
    wire.ask(GET, path + b"\1")
    xid = wire.send(SET, path + INT.pack(1) + b"x" + INT.pack(-1))
    messages = list(wire.until_reply(xid))

    assert [message[0] for message in messages] == [-1, xid]
    assert messages[0][1] == messages[1][1]  # the event names the transaction
    assert event(messages[0]) == (CHANGED, f"{namespace}/a")


def test_another_clients_read_shows_the_change_only_after_its_event(dial: Dial, namespace: str) -> None:
    watcher, writer = dial(), dial()
    watcher.connect()
    writer.connect()
    path = string(f"{namespace}/a")
    writer.ask(CREATE, create_body(f"{namespace}/a"))
    for number in range(1, 50):
        assert watcher.ask(GET, path + b"\1")[0] == 0
        writer.send(SET, path + INT.pack(4) + INT.pack(number) + INT.pack(-1))
        seen_event = False
        while True:
            xid = watcher.send(GET, path + b"\0")
            *events, reply = watcher.until_reply(xid)
            seen_event = seen_event or bool(events)
            if reply[3][4:8] == INT.pack(number):
                break
        assert seen_event
        writer.receive()


def test_an_ephemeral_that_goes_with_its_session_is_told(zk: Any, connect: Any) -> None:
    owner, heard = connect(), Queue[Any]()
    owner.create("/e", ephemeral=True)
    zk.exists("/e", watch=heard.put)
    owner.stop()

    assert heard.get(timeout=WAIT_S).type == "DELETED"


def test_watches_set_again_after_a_reconnect_tell_what_was_missed(dial: Dial, namespace: str) -> None:
    first = dial()
    _, session_id, password = first.connect()
    for name in ("same", "changed", "grown"):
        first.ask(CREATE, create_body(f"{namespace}/{name}"))
    xid = first.send(EXISTS, string(f"{namespace}/same") + b"\0")
    zxid = list(first.until_reply(xid))[-1][1]
    first.ask(SET, string(f"{namespace}/changed") + INT.pack(0) + INT.pack(-1))
    first.ask(CREATE, create_body(f"{namespace}/grown/child"))
    again = dial()
    again.connect(4000, session_id, password)
    named = [
        [f"{namespace}/{name}" for name in names]
        for names in (("same", "changed", "gone"), ("new",), ("grown",))
    ]
    xid = again.send(101, set_watches_body(zxid, *named), xid=-8)
    messages = list(again.until_reply(xid))

    assert sorted(event(message) for message in messages[:-1]) == [
        (DELETED, f"{namespace}/gone"),
        (CHANGED, f"{namespace}/changed"),
        (CHILD, f"{namespace}/grown"),
    ]
    again.send(CREATE, create_body(f"{namespace}/new"), xid=77)
    assert [event(message) for message in list(again.until_reply(77))[:-1]] == [(CREATED, f"{namespace}/new")]


def test_watches_die_with_their_connection(dial: Dial, namespace: str, zk: Any) -> None:
    wire = dial()
    _, session_id, password = wire.connect()
    wire.ask(GET, string(namespace) + b"\1")
    again = dial()
    again.connect(4000, session_id, password)
    zk.chroot = ""
    zk.set(namespace, b"x")

    assert again.ask(GET, string(namespace) + b"\0")[0] == 0  # the reply comes first: there was no event
