import pytest

from headrace.coordination.embedded.acl import (
    ADMIN,
    ALL,
    OPEN,
    READ,
    WRITE,
    Acl,
    Identity,
    allows,
    digest_identity,
    expand,
    masked,
)
from headrace.coordination.embedded.errors import ErrorCode, KeeperError

ANN = digest_identity(b"ann:secret")
BOB = Identity("sasl", "bob")


def test_the_digest_is_the_one_zookeeper_computes() -> None:
    assert digest_identity(b"super:test").id == "super:D/InIHSb7yEEbrWz8b9l71RjZJU="  # from its manual


def test_anyone_may_do_what_the_world_may() -> None:
    assert allows((Acl(READ, "world", "anyone"),), READ, [])
    assert not allows((Acl(READ, "world", "anyone"),), WRITE, [ANN])


def test_a_proved_identity_has_its_permissions_and_no_others() -> None:
    acl = (Acl(READ | WRITE, *ANN),)

    assert allows(acl, WRITE, [BOB, ANN])
    assert not allows(acl, ADMIN, [BOB, ANN])
    assert not allows(acl, WRITE, [BOB, digest_identity(b"ann:guess")])


def test_auth_stands_for_what_the_requester_proved() -> None:
    assert expand([Acl(ALL, "auth", "")], [BOB, ANN], "/a") == (Acl(ALL, *BOB), Acl(ALL, *ANN))


def test_repeated_entries_are_stored_once() -> None:
    assert expand([OPEN[0], OPEN[0]], [], "/a") is OPEN


@pytest.mark.parametrize(
    "requested",
    [
        [],
        [Acl(ALL, "auth", "")],  # nothing proved
        [Acl(ALL, "world", "everyone")],
        [Acl(ALL, "digest", "no-colon")],
        [Acl(ALL, "ip", "127.0.0.1")],
        [Acl(ALL, "sasl", "")],
        [Acl(ALL, "made-up", "ann")],
    ],
)
def test_lists_that_cannot_be_stored(requested: list[Acl]) -> None:
    with pytest.raises(KeeperError) as refused:
        expand(requested, [], "/a")

    assert refused.value.code is ErrorCode.INVALID_ACL


def test_who_may_not_change_a_list_does_not_see_its_digests() -> None:
    assert masked((Acl(READ, *ANN), OPEN[0])) == (Acl(READ, "digest", "ann:x"), OPEN[0])
