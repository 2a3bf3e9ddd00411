"""Access lists: kept, shown and enforced."""

from typing import Any

import pytest
from kazoo.exceptions import AuthFailedError, InvalidACLError, NoAuthError
from kazoo.security import ACL, Id, make_acl, make_digest_acl, make_digest_acl_credential

from coordination.conftest import Connect, Server

ANN = ("digest", "ann:secret")


def digest_id(name: str, password: str) -> Id:
    return Id("digest", make_digest_acl_credential(name, password))


def test_the_open_list_is_the_default(zk: Any) -> None:
    zk.create("/a")
    acls, stat = zk.get_acls("/a")

    assert acls == [ACL(31, Id("world", "anyone"))]
    assert stat.aversion == 0


def test_only_who_has_the_password_may(zk: Any, connect: Connect) -> None:
    ann = connect(auth_data=[ANN])
    ann.create("/private", b"x", acl=[make_digest_acl("ann", "secret", all=True)])
    assert ann.get("/private")[0] == b"x"
    for method, *arguments in (
        (zk.get, "/private"),
        (zk.set, "/private", b""),
        (zk.get_children, "/private"),
        (zk.create, "/private/child"),
        (zk.get_acls, "/private"),
        (zk.set_acls, "/private", [ACL(31, Id("world", "anyone"))]),
        (zk.exists, "/private"),
    ):
        with pytest.raises(NoAuthError):
            method(*arguments)
    zk.add_auth(*ANN)
    assert zk.get("/private")[0] == b"x"
    guess = connect(auth_data=[("digest", "ann:guess")])
    with pytest.raises(NoAuthError):
        guess.get("/private")


def test_each_permission_by_itself(zk: Any, connect: Connect) -> None:
    owner = connect(auth_data=[ANN])
    everything = make_digest_acl("ann", "secret", all=True)
    owner.create("/n", b"", acl=[everything, make_acl("world", "anyone", read=True)])
    zk.get("/n")
    with pytest.raises(NoAuthError):
        zk.set("/n", b"")
    owner.set_acls("/n", [everything, make_acl("world", "anyone", write=True)])
    zk.set("/n", b"")
    with pytest.raises(NoAuthError):
        zk.get("/n")
    owner.set_acls("/n", [everything, make_acl("world", "anyone", create=True)])
    zk.create("/n/child")
    with pytest.raises(NoAuthError):
        zk.delete("/n/child")
    owner.set_acls("/n", [everything, make_acl("world", "anyone", delete=True)])
    zk.delete("/n/child")
    with pytest.raises(NoAuthError):
        zk.create("/n/child")
    owner.set_acls("/n", [everything, make_acl("world", "anyone", admin=True)])
    zk.set_acls("/n", [make_acl("world", "anyone", all=True)])
    assert zk.get("/n")


def test_auth_becomes_the_identities_proved(zk: Any, connect: Connect) -> None:
    ann = connect(auth_data=[ANN])
    ann.create("/mine", acl=[ACL(31, Id("auth", ""))])

    assert ann.get_acls("/mine")[0] == [ACL(31, digest_id("ann", "secret"))]
    with pytest.raises(NoAuthError):
        zk.get("/mine")
    with pytest.raises(InvalidACLError):
        zk.create("/nobodys", acl=[ACL(31, Id("auth", ""))])


def test_who_may_only_read_sees_no_digests(zk: Any, connect: Connect) -> None:
    ann = connect(auth_data=[ANN])
    ann.create("/a", acl=[make_digest_acl("ann", "secret", all=True), make_acl("world", "anyone", read=True)])

    assert zk.get_acls("/a")[0] == [ACL(31, Id("digest", "ann:x")), ACL(1, Id("world", "anyone"))]


def test_the_list_has_a_version_of_its_own(zk: Any) -> None:
    zk.create("/a")
    stat = zk.set_acls("/a", [ACL(31, Id("world", "anyone"))], version=0)

    assert (stat.aversion, stat.version) == (1, 0)
    assert stat.mzxid == stat.czxid


@pytest.mark.parametrize("acl", [[ACL(31, Id("made-up", "x"))], [ACL(31, Id("ip", "300.1.1.1"))]])
def test_lists_that_make_no_sense(zk: Any, acl: list[ACL]) -> None:
    with pytest.raises(InvalidACLError):
        zk.create("/a", acl=acl)


def test_a_multi_is_checked_too(zk: Any, connect: Connect) -> None:
    ann = connect(auth_data=[ANN])
    ann.create("/private", acl=[make_digest_acl("ann", "secret", all=True)])
    transaction = zk.transaction()
    transaction.create("/mine")
    transaction.set_data("/private", b"")

    assert isinstance(transaction.commit()[1], NoAuthError)
    assert zk.exists("/mine") is None


def test_an_unknown_scheme_fails(zk: Any, server: Server) -> None:
    assert server.kind
    with pytest.raises(AuthFailedError):
        zk.add_auth("made-up", "x")
