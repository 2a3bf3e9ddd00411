from headrace.security.principals import Principal


def test_a_principal_survives_its_envelope() -> None:
    alice = Principal("alice")

    assert str(alice) == "User:alice"
    assert alice.encode() == b"\0\0" + b"\x05User" + b"\x06alice" + b"\0" + b"\0"
    assert Principal.decode(alice.encode()) == alice
