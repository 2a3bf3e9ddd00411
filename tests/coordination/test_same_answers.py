"""The same random requests to both servers: the same answers, numbers of transactions and times aside."""

import random
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.protocol.states import ZnodeStat
from kazoo.security import ACL, Id

from coordination.conftest import TIMEOUT_S, WAIT_S, Server

SEEDS = range(6)
STEPS = 250
PATHS = ["/a", "/b", "/a/c", "/a/d", "/a/c/e", "/b/f", "/", "/x/y"]
ACLS = [
    ACL(31, Id("world", "anyone")),
    ACL(1, Id("world", "anyone")),
    ACL(31, Id("auth", "")),
    ACL(31, Id("digest", "ann:wrong")),
    ACL(31, Id("digest", "malformed")),
    ACL(0, Id("world", "anyone")),
]


def plain(answer: Any, sessions: list[int]) -> Any:
    """`answer` without what must differ: zxids, times, session ids, the order of children."""
    if isinstance(answer, ZnodeStat):
        owner = (
            sessions.index(answer.ephemeralOwner)
            if answer.ephemeralOwner in sessions
            else answer.ephemeralOwner
        )
        changed = (answer.mzxid != answer.czxid, answer.pzxid != answer.czxid, answer.pzxid > answer.mzxid)
        return (*answer[4:7], owner, *answer[8:10], changed)
    if isinstance(answer, BaseException):
        return type(answer).__name__
    if isinstance(answer, list) and all(isinstance(each, str) for each in answer):
        return sorted(answer)
    if isinstance(answer, tuple | list):
        return [plain(each, sessions) for each in answer]
    return answer


def steps(seed: int) -> list[tuple[int, str, tuple[Any, ...], dict[str, Any]]]:
    """Client, method, arguments: the same for both servers."""
    chance = random.Random(seed)
    return [(chance.randrange(2), *step(chance)) for _ in range(STEPS)]


def step(chance: random.Random) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    path = chance.choice(PATHS)
    version = chance.choice([-1, -1, 0, 1, 2])
    kind = chance.choice(
        ["create"] * 4 + ["set", "delete", "get", "exists", "get_children", "acl", "acls", "multi"]
    )
    if kind == "create":
        acl = [chance.choice(ACLS)] if chance.random() < 0.25 else None
        options = {"ephemeral": chance.random() < 0.3, "sequence": chance.random() < 0.3, "acl": acl}
        return "create", (path, b"x" * chance.randrange(3)), options | {"include_data": chance.random() < 0.5}
    if kind == "set":
        return "set", (path, b"y" * chance.randrange(4), version), {}
    if kind == "delete":
        return "delete", (path, version), {}
    if kind == "get_children":
        return "get_children", (path,), {"include_data": True}
    if kind == "acls":
        return "set_acls", (path, [chance.choice(ACLS)], version), {}
    if kind == "multi":
        return "multi", tuple(step(chance) for _ in range(chance.randrange(1, 5))), {}
    return "get_acls" if kind == "acl" else kind, (path,), {}


def multi(client: Any, parts: tuple[Any, ...]) -> Any:
    transaction = client.transaction()
    for method, arguments, options in parts:
        if method == "create":
            transaction.create(
                *arguments, **{name: value for name, value in options.items() if name != "include_data"}
            )
        elif method == "set":
            transaction.set_data(*arguments)
        elif method == "delete":
            transaction.delete(*arguments)
        else:
            transaction.check(arguments[0] if isinstance(arguments[0], str) else "/a", 1)
    return transaction.commit()


def answers(address: str, seed: int) -> list[Any]:
    root = f"/same-{seed}"
    maker = KazooClient(address, timeout=TIMEOUT_S)
    maker.start(WAIT_S)
    maker.create(root)
    maker.stop()
    maker.close()
    clients = [KazooClient(address + root, timeout=TIMEOUT_S) for _ in range(2)]
    for client in clients:
        client.start(WAIT_S)
    clients[0].add_auth("digest", "ann:secret")
    sessions = [client.client_id[0] for client in clients]
    collected = []
    for who, method, arguments, options in steps(seed):
        client = clients[who]
        try:
            answer = (
                multi(client, arguments)
                if method == "multi"
                else getattr(client, method)(*arguments, **options)
            )
        except KazooException as error:
            answer = error
        collected.append((method, arguments, plain(answer, sessions)))
    for client in clients:
        client.stop()
        client.close()
    return collected


@pytest.mark.parametrize("seed", SEEDS)
def test_both_servers_give_the_same_answers(embedded: Server, apache_zookeeper: Server, seed: int) -> None:
    ours, theirs = answers(embedded.address, seed), answers(apache_zookeeper.address, seed)

    for number, (mine, expected) in enumerate(zip(ours, theirs, strict=True)):
        assert mine == expected, f"step {number}"
