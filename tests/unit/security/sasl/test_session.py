"""The authentication of a connection, step by step."""

from collections.abc import Mapping
from functools import partial

import pytest

from headrace.security.principals import Principal
from headrace.security.sasl.exchange import PLAIN, SCRAM_SHA_256, AuthenticationFailed
from headrace.security.sasl.plain import PlainExchange
from headrace.security.sasl.session import Mechanism, SaslSession

USERS: Mapping[str, str] = {"alice": "a", "bob": "b"}


class Clock:
    def __init__(self) -> None:
        self.ms = 1000

    def __call__(self) -> int:
        return self.ms


def session(clock: Clock | None = None, *, max_session_ms: int = 0) -> SaslSession:
    plain = Mechanism(partial(PlainExchange, USERS.get), max_session_ms)
    return SaslSession({PLAIN: plain}, clock or Clock())


def log_in(of: SaslSession, user: bytes = b"alice") -> None:
    assert of.choose(PLAIN, raw=False)
    assert of.respond(b"\0%s\0%s" % (user, user[:1])) == b""


def test_a_client_that_proves_who_it_is_has_a_principal() -> None:
    made = session()
    before = made.principal
    log_in(made)

    assert (before, made.principal) == (None, Principal("alice"))
    assert made.lifetime_ms == 0
    assert not made.has_failed


def test_another_mechanism_is_refused_for_good() -> None:
    made = session()

    assert made.mechanisms == [PLAIN]
    assert not made.choose(SCRAM_SHA_256, raw=False)
    assert made.has_failed
    with pytest.raises(AuthenticationFailed):
        made.choose(PLAIN, raw=False)


def test_a_failure_is_final() -> None:
    made = session()
    made.choose(PLAIN, raw=False)
    with pytest.raises(AuthenticationFailed):
        made.respond(b"\0alice\0wrong")

    assert made.has_failed
    with pytest.raises(AuthenticationFailed):
        made.respond(b"\0alice\0a")
    assert made.principal is None


def test_messages_need_a_handshake_before_them() -> None:
    made = session()
    with pytest.raises(AuthenticationFailed, match="after SaslHandshake"):
        made.respond(b"\0alice\0a")
    assert made.has_failed


def test_a_session_ends_unless_the_client_authenticates_again() -> None:
    clock = Clock()
    made = session(clock, max_session_ms=500)
    log_in(made)
    assert made.lifetime_ms == 500

    clock.ms += 400
    assert made.choose(PLAIN, raw=False)
    assert made.principal == Principal("alice"), "requests are accepted meanwhile"
    made.respond(b"\0alice\0a")
    clock.ms += 400
    assert made.principal == Principal("alice")
    clock.ms += 100
    assert made.principal != Principal("alice")
    log_in(made)
    assert made.principal == Principal("alice"), "it may also be late"


def test_a_client_stays_the_same_user() -> None:
    made = session()
    log_in(made)
    made.choose(PLAIN, raw=False)
    with pytest.raises(AuthenticationFailed, match="Cannot change principals"):
        made.respond(b"\0bob\0b")

    assert made.principal is None
    assert made.has_failed


def test_raw_messages_end_with_the_exchange() -> None:
    made = session()
    made.choose(PLAIN, raw=True)
    assert made.is_raw
    made.respond(b"\0alice\0a")

    assert not made.is_raw
