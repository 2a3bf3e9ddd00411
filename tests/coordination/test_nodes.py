"""Nodes: data, versions, numbers, children."""

from collections.abc import Callable
from typing import Any

import pytest
from kazoo.exceptions import (
    BadArgumentsError,
    BadVersionError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    UnimplementedError,
)

from coordination.conftest import Dial
from headrace.coordination.embedded.jute import INT, string


def test_what_is_created_is_read_back(zk: Any) -> None:
    assert zk.create("/a", b"data") == "/a"
    data, stat = zk.get("/a")

    assert data == b"data"
    assert (stat.version, stat.cversion, stat.aversion) == (0, 0, 0)
    assert (stat.dataLength, stat.numChildren, stat.ephemeralOwner) == (4, 0, 0)
    assert stat.czxid == stat.mzxid == stat.pzxid
    assert stat.ctime == stat.mtime


def test_every_change_has_its_own_number(zk: Any) -> None:
    zk.create("/a")
    created = zk.exists("/a")
    changed = zk.set("/a", b"1")
    zk.create("/a/b")
    grown = zk.exists("/a")
    zk.delete("/a/b")
    shrunk = zk.exists("/a")

    assert changed.czxid == created.czxid < changed.mzxid < grown.pzxid < shrunk.pzxid
    assert (changed.version, grown.version) == (1, 1)
    assert (created.cversion, grown.cversion, shrunk.cversion) == (0, 1, 2)
    assert (grown.numChildren, shrunk.numChildren) == (1, 0)


def test_a_write_with_the_wrong_version_changes_nothing(zk: Any) -> None:
    zk.create("/a", b"first")
    zk.set("/a", b"second", version=0)
    with pytest.raises(BadVersionError):
        zk.set("/a", b"third", version=0)
    with pytest.raises(BadVersionError):
        zk.delete("/a", version=0)

    assert zk.get("/a")[0] == b"second"
    zk.delete("/a", version=1)
    assert zk.exists("/a") is None


def test_what_is_not_there(zk: Any) -> None:
    for method, *arguments in ((zk.get, "/x"), (zk.set, "/x", b""), (zk.delete, "/x"), (zk.create, "/x/y")):
        with pytest.raises(NoNodeError):
            method(*arguments)
    assert zk.exists("/x") is None


def test_what_is_there_already_or_not_empty(zk: Any) -> None:
    zk.create("/a")
    zk.create("/a/b")
    with pytest.raises(NodeExistsError):
        zk.create("/a")
    with pytest.raises(NotEmptyError):
        zk.delete("/a")


def test_sequence_numbers_count_the_children_ever_created(zk: Any) -> None:
    zk.create("/q")
    zk.create("/q/plain")
    first = zk.create("/q/n-", sequence=True)
    zk.delete(first)
    second = zk.create("/q/n-", sequence=True)
    third = zk.create("/q/", sequence=True)

    assert (first, second, third) == ("/q/n-0000000001", "/q/n-0000000002", "/q/0000000003")


def test_create2_answers_with_the_stat(zk: Any) -> None:
    path, stat = zk.create("/a-", b"xyz", sequence=True, include_data=True)

    assert path == "/a-0000000000"
    assert stat.dataLength == 3
    assert stat == zk.exists(path)


def test_an_ephemeral_node_has_an_owner_and_no_children(zk: Any) -> None:
    zk.create("/e", ephemeral=True)

    assert zk.exists("/e").ephemeralOwner == zk.client_id[0]
    with pytest.raises(NoChildrenForEphemeralsError):
        zk.create("/e/child")


def test_ensure_path_and_recursive_delete(zk: Any) -> None:
    zk.ensure_path("/a/b/c/d")
    zk.create("/a/b/x")
    zk.delete("/a", recursive=True)

    assert zk.get_children("/") == []


def test_a_node_just_below_the_limit(zk: Any) -> None:
    large = bytes(range(256)) * 4000  # of 1,048,575 bytes a request may have
    zk.create("/large", large)

    assert zk.get("/large")[0] == large
    zk.set("/large", large[::-1])
    assert zk.get("/large")[0] == large[::-1]


def test_thousands_of_children(zk: Any) -> None:
    zk.create("/many")
    _wait_for_all(zk.create_async, [f"/many/child-{number:05}" for number in range(3000)])
    children, stat = zk.get_children("/many", include_data=True)

    assert sorted(children) == [f"child-{number:05}" for number in range(3000)]
    assert (stat.numChildren, stat.cversion) == (3000, 3000)
    _wait_for_all(zk.delete_async, [f"/many/{name}" for name in children])
    assert zk.exists("/many").cversion == 6000


def _wait_for_all(request: Callable[[str], Any], paths: list[str], at_a_time: int = 500) -> None:
    """Not all at a time: beyond a thousand ZooKeeper stops reading, and a session may expire meanwhile."""
    for first in range(0, len(paths), at_a_time):
        for result in [request(path) for path in paths[first : first + at_a_time]]:
            result.get(30)


def test_names_in_any_language(zk: Any) -> None:
    zk.create("/größe-名前", "wert-値".encode())

    assert zk.get_children("/") == ["größe-名前"]
    assert zk.get("/größe-名前")[0].decode() == "wert-値"


def test_paths_that_are_none(zk: Any) -> None:
    with pytest.raises(BadArgumentsError):
        zk.create("/a\x01b")


def test_replies_come_in_the_order_of_the_requests(dial: Dial, namespace: str) -> None:
    wire = dial()
    wire.connect()
    path = string(namespace)
    mixed: list[Any] = [(4, path + b"\0"), (5, path + INT.pack(0) + INT.pack(-1)), (11, b"", -2)]
    sent = [wire.send(*mixed[number % 3]) for number in range(600)]
    received = [wire.receive() for _ in sent]

    assert [message[0] for message in received] == sent
    zxids = [message[1] for message in received]
    assert zxids == sorted(zxids)


def test_sync_answers(zk: Any) -> None:
    assert zk.sync("/") == "/" or zk.sync("/").startswith("/test-")


def test_reconfiguring_one_server_is_unimplemented(zk: Any, server: Any) -> None:
    if server.kind == "zookeeper":
        pytest.skip("ZooKeeper has it disabled and says that first")
    with pytest.raises(UnimplementedError):
        zk.reconfig(joining=None, leaving="2", new_members=None)


def test_what_zookeeper_keeps_for_itself_cannot_be_deleted(connect: Any) -> None:
    client = connect()
    client.chroot = ""
    for path in ("/zookeeper/quota", "/zookeeper/config"):
        with pytest.raises(BadArgumentsError):
            client.delete(path)
    assert sorted(client.get_children("/zookeeper")) == ["config", "quota"]
