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
    authenticate,
    digest_identity,
    expand,
    masked,
)
from headrace.coordination.embedded.errors import ErrorCode, KeeperError

ANN = digest_identity(b"ann:secret")
HOME = Identity("ip", "127.0.0.1")


def test_the_digest_is_the_one_zookeeper_computes() -> None:
    assert digest_identity(b"super:test").id == "super:D/InIHSb7yEEbrWz8b9l71RjZJU="  # from its manual


def test_anyone_may_do_what_the_world_may() -> None:
    assert allows((Acl(READ, "world", "anyone"),), READ, [])
    assert not allows((Acl(READ, "world", "anyone"),), WRITE, [ANN])


def test_a_proved_identity_has_its_permissions_and_no_others() -> None:
    acl = (Acl(READ | WRITE, *ANN),)

    assert allows(acl, WRITE, [HOME, ANN])
    assert not allows(acl, ADMIN, [HOME, ANN])
    assert not allows(acl, WRITE, [HOME, digest_identity(b"ann:guess")])


@pytest.mark.parametrize(
    ("network", "address", "expected"),
    [
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3", "10.1.2.4", False),
        ("10.1.0.0/16", "10.1.200.4", True),
        ("10.1.0.0/16", "10.2.0.1", False),
        ("fe80::/10", "fe80::1", True),
        ("fe80::/10", "10.0.0.1", False),
    ],
)
def test_an_address_or_a_network_of_them(network: str, address: str, expected: bool) -> None:
    assert allows((Acl(READ, "ip", network),), READ, [Identity("ip", address)]) is expected


def test_auth_stands_for_what_the_requester_proved() -> None:
    assert expand([Acl(ALL, "auth", "")], [HOME, ANN], "/a") == (Acl(ALL, *ANN),)


def test_repeated_entries_are_stored_once() -> None:
    assert expand([OPEN[0], OPEN[0]], [], "/a") is OPEN


@pytest.mark.parametrize(
    "requested",
    [
        [],
        [Acl(ALL, "auth", "")],  # nothing proved
        [Acl(ALL, "world", "everyone")],
        [Acl(ALL, "digest", "no-colon")],
        [Acl(ALL, "ip", "not an address")],
        [Acl(ALL, "sasl", "")],
        [Acl(ALL, "made-up", "ann")],
    ],
)
def test_lists_that_cannot_be_stored(requested: list[Acl]) -> None:
    with pytest.raises(KeeperError) as refused:
        expand(requested, [HOME], "/a")

    assert refused.value.code is ErrorCode.INVALID_ACL


def test_who_may_not_change_a_list_does_not_see_its_digests() -> None:
    assert masked((Acl(READ, *ANN), OPEN[0])) == (Acl(READ, "digest", "ann:x"), OPEN[0])


def test_an_unknown_scheme_proves_nothing() -> None:
    assert authenticate("kerberos", b"ann", "127.0.0.1") is None
    assert authenticate("ip", b"", "127.0.0.1") == HOME
