"""Any history of requests: the tree does what a naive one does, and its log replays to the same tree."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coordination.fakes import World
from headrace.coordination.embedded.acl import OPEN
from headrace.coordination.embedded.decide import MultiFailed, Requester, decide, decide_multi
from headrace.coordination.embedded.errors import KeeperError
from headrace.coordination.embedded.jute import Reader
from headrace.coordination.embedded.node import STAT, Znode
from headrace.coordination.embedded.requests import Check, Create, Delete, Multi, Op, Request, SetData, Write
from headrace.coordination.embedded.state import CoordinatorState
from headrace.coordination.embedded.txns import CloseSession, OpenSession, decode_entry, encode_entry
from oracles.naive_zookeeper import NaiveError, NaiveZooKeeper

SESSIONS = (1, 2)
names = st.sampled_from(["a", "b"])
paths = st.lists(names, min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
versions = st.integers(-1, 3)
data = st.binary(max_size=3)
sessions = st.sampled_from(SESSIONS)
writes = st.one_of(
    st.tuples(st.just("create"), sessions, paths, data, st.integers(0, 3)),
    st.tuples(st.just("delete"), paths, versions),
    st.tuples(st.just("set"), paths, data, versions),
    st.tuples(st.just("check"), paths, versions),
)
steps = st.one_of(
    writes,
    writes,
    st.tuples(st.just("multi"), sessions, st.lists(writes, max_size=4)),
    st.tuples(st.just("close"), sessions),
)
histories = st.lists(steps, max_size=40)


def request_of(name: str, *arguments: Any) -> tuple[Op, Write]:
    if name == "create":
        _session, path, value, flags = arguments
        return Op.CREATE, Create(path, value, list(OPEN), flags)
    if name == "delete":
        return Op.DELETE, Delete(*arguments)
    return (Op.SET_DATA, SetData(*arguments)) if name == "set" else (Op.CHECK, Check(*arguments))


def ours(world: World, step: tuple[Any, ...]) -> Any:
    """The outcome of a step, in the words of the naive one."""
    name, *arguments = step
    nodes = world.state.tree.nodes
    if name == "close":
        world.service.submit(CloseSession(arguments[0], world.state.tree.ephemerals(arguments[0])))
        return None
    session = arguments[0] if name in ("create", "multi") else SESSIONS[0]
    requester = Requester(session, ())
    try:
        if name == "multi":
            operations: list[tuple[Op, Request]] = [request_of(*each) for each in arguments[1]]
            applied = world.service.submit(decide_multi(Multi(operations), nodes, requester))
            return [
                outcome(each[0], part.txn.path, part.node)
                for each, part in zip(arguments[1], applied, strict=True)
            ]
        part = world.service.submit(decide(request_of(*step)[1], nodes, requester))[0]
        return outcome(name, part.txn.path, part.node)
    except MultiFailed as refused:
        return [int(code) for code in refused.codes()]
    except KeeperError as refused:
        return int(refused.code)


def outcome(name: str, path: str, node: Znode | None) -> Any:
    return path if name == "create" else node.version if name == "set" and node else None


def naive(model: NaiveZooKeeper, step: tuple[Any, ...]) -> Any:
    name, *arguments = step
    if name == "multi":
        session, operations = arguments
        return model.multi(
            [(op, session, *rest[1:]) if op == "create" else (op, *rest) for op, *rest in operations]
        )
    try:
        return getattr(model, name)(*arguments)
    except NaiveError as error:
        return error.code


def world_with_sessions() -> World:
    world = World()
    for session in SESSIONS:
        world.service.submit(OpenSession(session, 1000, b"x" * 16))
    return world


def facts(state: CoordinatorState) -> tuple[object, ...]:
    tree = state.tree
    return (
        state.zxid,
        tree.nodes,
        {path: set(tree.children(path)) for path in tree.nodes},
        [set(tree.ephemerals(session)) for session in SESSIONS],
        state.sessions.all(),
    )


@given(histories)
def test_the_tree_does_what_a_naive_one_does(history: list[tuple[Any, ...]]) -> None:
    world, model = world_with_sessions(), NaiveZooKeeper()
    for step in history:
        assert ours(world, step) == naive(model, step), step

    tree = world.state.tree
    mine = {path for path in tree.nodes if not path.startswith("/zookeeper")}
    assert mine == set(model.nodes)
    for path in mine - {"/"}:
        node, expected = tree.nodes[path], model.nodes[path]
        stat = STAT.unpack(node.stat())
        assert list(tree.children(path)) == expected.children
        assert (node.data, node.owner) == (expected.data, expected.owner)
        assert stat[4:6] == (expected.version, expected.changes)
        assert stat[8:10] == (len(expected.data), len(expected.children))


@given(histories, st.integers(0, 40))
def test_replaying_the_log_gives_the_same_tree(history: list[tuple[Any, ...]], snapshot_at: int) -> None:
    world = world_with_sessions()
    image = world.state.image()
    for number, step in enumerate(history):
        if number == snapshot_at:
            image = world.state.image()
        ours(world, step)

    log = [decode_entry(Reader(encode_entry(entry))) for entry in world.entries]
    for start in (CoordinatorState(100), CoordinatorState(100, image)):
        for entry in log[start.zxid :]:
            start.apply(entry)
        assert facts(start) == facts(world.state)


@given(histories)
def test_deciding_changes_nothing(history: list[tuple[Any, ...]]) -> None:
    world = world_with_sessions()
    for step in history:
        ours(world, step)
    before = facts(CoordinatorState(100, world.state.image()))
    for name, *arguments in history:
        if name not in ("multi", "close"):
            try:
                decide(request_of(name, *arguments)[1], world.state.tree.nodes, Requester(1, ()))
            except KeeperError:
                continue

    assert facts(CoordinatorState(100, world.state.image())) == before
