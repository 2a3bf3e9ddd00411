"""Requests, replies and events without a socket."""

from struct import pack

import pytest

from coordination.fakes import FakeClient, World, create_body, set_watches_body
from headrace.coordination.embedded.acl import READ, Acl
from headrace.coordination.embedded.errors import ErrorCode, MalformedRequest
from headrace.coordination.embedded.handlers import answer
from headrace.coordination.embedded.jute import INT, string
from headrace.coordination.embedded.requests import Op
from headrace.coordination.embedded.tree import EventType

CREATED, DELETED, CHANGED, CHILDREN = EventType
OK = ErrorCode.OK


@pytest.fixture
def world() -> World:
    return World()


def kinds(heard: list[tuple[object, ...]]) -> list[object]:
    return [each[:2] if each[0] == "reply" else each for each in heard]


def test_an_event_comes_before_the_reply_that_shows_the_change(world: World) -> None:
    client = world.client()
    client.create("/a")
    client.watch(Op.GET_DATA, "/a")

    assert kinds(client.set("/a", b"new")) == [("event", CHANGED, "/a"), ("reply", OK)]


def test_a_creation_tells_who_asked_whether_it_exists_and_who_listed_the_parent(world: World) -> None:
    client, other = world.client(), world.client()
    assert kinds(client.watch(Op.EXISTS, "/a")) == [("reply", ErrorCode.NO_NODE)]
    client.watch(Op.GET_CHILDREN, "/")
    other.create("/a")

    assert client.heard() == [("event", CREATED, "/a"), ("event", CHILDREN, "/")]


def test_a_read_that_fails_leaves_no_watch(world: World) -> None:
    client = world.client()
    client.watch(Op.GET_DATA, "/a")
    client.create("/a")

    assert client.heard() == []
    assert len(world.service.watches) == 0


def test_a_refused_write_is_not_logged(world: World) -> None:
    client = world.client()
    before = len(world.entries)

    assert kinds(client.set("/missing", b"")) == [("reply", ErrorCode.NO_NODE)]
    assert len(world.entries) == before


def test_an_unknown_request_is_unimplemented_and_a_cut_one_malformed(world: World) -> None:
    client = world.client()

    assert kinds(client.ask(4711)) == [("reply", ErrorCode.UNIMPLEMENTED)]
    assert kinds(client.ask(16, b"rubbish")) == [("reply", ErrorCode.UNIMPLEMENTED)]
    assert kinds(client.ask(Op.GET_DATA, pack(">i", 999))) == [("reply", ErrorCode.MARSHALLING_ERROR)]
    with pytest.raises(MalformedRequest):
        answer(world.service, client, b"\0\0\0")


def test_a_multi_sees_its_own_changes_and_none_remain_if_one_is_refused(world: World) -> None:
    client = world.client()

    def operation(op: Op, body: bytes) -> bytes:
        return pack(">ibi", op, 0, -1) + body

    creates = operation(Op.CREATE, create_body("/a")) + operation(Op.CREATE, create_body("/a/b"))
    end = pack(">ibi", -1, 1, -1)
    refused = client.ask(Op.MULTI, creates + operation(Op.DELETE, string("/a") + INT.pack(-1)) + end)
    errors = b"".join(pack(">ibii", -1, 0, code, code) for code in (0, 0, ErrorCode.NOT_EMPTY))
    assert refused == [("reply", OK, errors + end)]
    assert "/a" not in world.state.tree.nodes

    assert kinds(client.ask(Op.MULTI, creates + end)) == [("reply", OK)]
    assert list(world.state.tree.children("/a")) == ["b"]


def test_ephemeral_nodes_go_with_their_session(world: World) -> None:
    owner, other = world.client(), world.client()
    owner.create("/mine", flags=1)
    other.watch(Op.EXISTS, "/mine")

    assert kinds(owner.ask(Op.CLOSE)) == [("reply", OK)]
    assert owner.closed
    assert other.heard() == [("event", DELETED, "/mine")]


def test_a_session_not_heard_of_expires_and_its_connection_is_closed(world: World) -> None:
    silent, lively = world.client(1000), world.client(1000)
    silent.create("/mine", flags=1)
    world.now_ms = 900
    lively.ask(Op.PING)
    world.now_ms = 1100

    assert world.service.expire() == [silent.requester.session_id]
    assert (silent.closed, lively.closed) == (True, False)
    assert "/mine" not in world.state.tree.nodes


def test_a_client_that_comes_back_has_its_session_again(world: World) -> None:
    first = FakeClient(world.service)
    _, session_id, password = first.connect()
    second = FakeClient(world.service)

    assert second.connect(1000, session_id, password) == (1000, session_id, password)
    assert first.closed
    assert not second.closed


def test_an_unknown_session_or_a_wrong_password_is_answered_with_timeout_0(world: World) -> None:
    _, session_id, _ = FakeClient(world.service).connect()
    for claim in ((session_id, b"x" * 16), (session_id + 1, b"x" * 16)):
        stranger = FakeClient(world.service)
        assert stranger.connect(1000, *claim)[:2] == (0, 0)
        assert stranger.closed


def test_a_client_that_has_seen_the_future_is_turned_away(world: World) -> None:
    client = FakeClient(world.service)
    client.connect(last_zxid=99)

    assert client.closed
    assert not client.messages


def test_watches_set_again_tell_what_was_missed(world: World) -> None:
    client = world.client()
    for path in ("/same", "/changed", "/grown"):
        client.create(path)
    seen = world.state.zxid
    client.set("/changed", b"new")
    client.create("/grown/child")
    body = set_watches_body(seen, ["/same", "/changed", "/gone"], ["/grown", "/not-yet"], ["/grown", "/same"])

    assert kinds(client.ask(Op.SET_WATCHES, body)) == [
        ("event", CHANGED, "/changed"),
        ("event", DELETED, "/gone"),
        ("event", CREATED, "/grown"),
        ("event", CHILDREN, "/grown"),
        ("reply", OK),
    ]
    assert kinds(client.set("/same", b"x")) == [("event", CHANGED, "/same"), ("reply", OK)]
    assert kinds(client.create("/not-yet")) == [("event", CREATED, "/not-yet"), ("reply", OK)]


def test_who_may_not_read_a_node_is_not_told_of_it(world: World) -> None:
    spy, owner = world.client(), world.client()
    spy.watch(Op.EXISTS, "/secret")
    owner.ask(Op.AUTH, pack(">i", 0) + string("digest") + string("ann:secret"))
    owner.create("/secret", acl=(Acl(READ, "auth", ""),))

    assert spy.heard() == []


def test_a_container_is_refused(world: World) -> None:
    client = world.client()

    assert kinds(client.ask(Op.CREATE, create_body("/box", flags=4))) == [("reply", ErrorCode.UNIMPLEMENTED)]


def test_versions_wrap_around_instead_of_breaking_the_reply(world: World) -> None:
    client = world.client()
    client.create("/a")
    nodes = world.state.tree.nodes
    nodes["/a"] = nodes["/a"]._replace(version=2**31 - 1, cversion=2**31 - 1)

    assert kinds(client.set("/a", b"x")) == [("reply", OK)]
    assert kinds(client.create("/a/n-", flags=2)) == [("reply", OK)]
    assert nodes["/a"].version == -(2**31)


def test_a_multi_read_cannot_ask_for_everything_many_times(world: World) -> None:
    client = world.client()
    client.create("/large", bytes(1_000_000))
    read = pack(">ibi", Op.GET_DATA, 0, -1) + string("/large") + b"\0"

    assert kinds(client.ask(Op.MULTI_READ, read * 5 + pack(">ibi", -1, 1, -1))) == [("reply", OK)]
    assert kinds(client.ask(Op.MULTI_READ, read * 5000 + pack(">ibi", -1, 1, -1))) == [
        ("reply", ErrorCode.QUOTA_EXCEEDED)
    ]


def test_a_bug_while_a_change_is_carried_out_is_reported(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object) -> None:
        raise ZeroDivisionError

    client = world.client()
    monkeypatch.setattr(world.state, "apply", broken)
    with pytest.raises(ZeroDivisionError):
        client.create("/a")

    assert [type(bug) for bug in world.bugs] == [ZeroDivisionError]
