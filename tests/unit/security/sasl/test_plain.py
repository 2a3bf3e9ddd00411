"""PLAIN on the broker's side."""

import pytest

from headrace.security.sasl.exchange import AuthenticationFailed, User
from headrace.security.sasl.jaas import jaas_options
from headrace.security.sasl.plain import PlainExchange, passwords

JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="admin" password="admin-secret" user_admin="admin-secret" user_alice="wonder land\\"";'
)


def exchange() -> PlainExchange:
    return PlainExchange(passwords(jaas_options(JAAS)).get)


@pytest.mark.parametrize("message", [b'\0alice\0wonder land"', b'alice\0alice\0wonder land"'])
def test_a_user_of_the_login_module_may_enter(message: bytes) -> None:
    server = exchange()

    assert server.respond(message) == b""
    assert server.user == User("alice")


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"\0alice\0wrong", "invalid credentials with SASL mechanism PLAIN"),
        (b"\0bob\0wrong", "invalid credentials with SASL mechanism PLAIN"),
        (b"\0username\0admin", "invalid credentials with SASL mechanism PLAIN"),
        (b'admin\0alice\0wonder land"', "authorization id that is different"),
        (b"\0alice\0", "empty"),
        (b"\0\0secret", "empty"),
        (b"alice\0secret", "expected 3 tokens, got 2"),
        (b"\0alice\0secret\0", "expected 3 tokens, got 4"),
        (b"\0\xff\0secret", "not UTF-8"),
    ],
)
def test_others_are_refused_without_their_password_being_repeated(message: bytes, why: str) -> None:
    server = exchange()
    with pytest.raises(AuthenticationFailed, match=why) as error:
        server.respond(message)

    assert server.user is None
    assert "secret" not in str(error.value)
    assert "wonder" not in str(error.value)
