"""Transactions: all or nothing."""

from typing import Any

from kazoo.exceptions import BadVersionError, NoNodeError, RolledBackError, RuntimeInconsistency

from coordination.conftest import Dial
from coordination.fakes import create_body
from headrace.coordination.embedded.jute import string


def test_all_operations_take_effect_under_one_number(zk: Any) -> None:
    zk.create("/a", b"0")
    transaction = zk.transaction()
    transaction.check("/a", 0)
    transaction.set_data("/a", b"1", version=0)
    transaction.create("/b", b"b")
    transaction.create("/b/n-", sequence=True)
    transaction.create("/e", ephemeral=True)
    transaction.delete("/b/n-0000000000")
    results = transaction.commit()

    assert results[0] is True
    assert results[1].version == 1
    assert results[2:] == ["/b", "/b/n-0000000000", "/e", True]
    assert len({zk.exists(path).mzxid for path in ("/a", "/b", "/e")}) == 1
    assert zk.exists("/b").pzxid == zk.exists("/a").mzxid
    assert zk.exists("/e").ephemeralOwner == zk.client_id[0]


def test_one_refusal_undoes_the_rest(zk: Any) -> None:
    zk.create("/a", b"0")
    before = zk.get("/a")
    transaction = zk.transaction()
    transaction.set_data("/a", b"1")
    transaction.create("/new")
    transaction.check("/a", 17)
    transaction.delete("/a")
    results = transaction.commit()

    assert [type(result) for result in results] == [
        RolledBackError,
        RolledBackError,
        BadVersionError,
        RuntimeInconsistency,
    ]
    assert zk.get("/a") == before
    assert zk.get_children("/") == ["a"]


def test_a_later_operation_sees_the_earlier_ones(zk: Any) -> None:
    transaction = zk.transaction()
    transaction.create("/a")
    transaction.set_data("/a", b"1", version=0)
    transaction.set_data("/a", b"2", version=1)
    transaction.delete("/a", version=2)
    transaction.create("/a", b"again")

    assert [getattr(result, "version", result) for result in transaction.commit()] == ["/a", 1, 2, True, "/a"]
    assert zk.get("/a")[0] == b"again"


def test_a_refused_sequence_leaves_no_gap(zk: Any) -> None:
    transaction = zk.transaction()
    transaction.create("/n-", sequence=True)
    transaction.delete("/missing")
    assert isinstance(transaction.commit()[1], NoNodeError)

    assert zk.create("/n-", sequence=True) == "/n-0000000000"


def test_an_empty_transaction(zk: Any) -> None:
    assert zk.transaction().commit() == []


def test_several_reads_at_once_each_for_itself(dial: Dial, namespace: str) -> None:
    wire = dial()
    wire.connect()
    wire.ask(1, create_body(f"{namespace}/a", b"data"))

    def part(op: int, path: str) -> bytes:
        return op.to_bytes(4, "big") + b"\0\xff\xff\xff\xff" + string(path) + b"\0"

    body = part(4, f"{namespace}/a") + part(4, "/missing") + part(8, namespace)
    error, reply = wire.ask(22, body + b"\xff\xff\xff\xff\1\xff\xff\xff\xff")

    assert error == 0
    assert b"data" in reply
    assert (-101).to_bytes(4, "big", signed=True) in reply
    assert reply.endswith(b"\0\0\0\1\0\0\0\1a" + b"\xff\xff\xff\xff\1\xff\xff\xff\xff")
