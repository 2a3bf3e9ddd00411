import pytest

from headrace.security.principals import Principal


def test_a_principal_survives_its_envelope() -> None:
    alice = Principal("alice")

    assert str(alice) == "User:alice"
    assert alice.encode() == b"\0\0" + b"\x05User" + b"\x06alice" + b"\0" + b"\0"
    assert Principal.decode(alice.encode()) == alice


def test_the_name_of_a_principal_may_contain_colons() -> None:
    assert Principal.parse("User:CN=a:b") == Principal("CN=a:b")
    assert Principal.parse("Group:ops") == Principal("ops", type="Group")


def test_a_principal_without_a_type_is_refused() -> None:
    with pytest.raises(ValueError, match="expected TYPE:NAME"):
        Principal.parse("alice")
