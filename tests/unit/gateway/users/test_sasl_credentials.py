"""The SASL credentials of a user's connections."""

import time

import pytest

from headrace.gateway.users.credentials import BadCredentials, Password, Token, TokenSource, sasl_of
from unit.gateway.users.test_credentials import jwt

ALICE = Password("alice", "wonderland")


@pytest.mark.parametrize(
    ("offered", "wanted", "mechanism"),
    [
        (["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"], None, "SCRAM-SHA-512"),
        (["PLAIN", "SCRAM-SHA-256"], None, "SCRAM-SHA-256"),
        (["OAUTHBEARER", "PLAIN"], None, "PLAIN"),
        (["PLAIN", "SCRAM-SHA-512"], "PLAIN", "PLAIN"),
    ],
)
def test_a_password_gets_the_strongest_mechanism_or_the_configured_one(
    offered: list[str], wanted: str | None, mechanism: str
) -> None:
    sasl = sasl_of(ALICE, offered, wanted)
    assert (sasl.mechanism, sasl.username, sasl.password) == (mechanism, "alice", "wonderland")
    assert "wonderland" not in repr(sasl)


def test_credentials_need_a_mechanism_that_the_brokers_offer() -> None:
    with pytest.raises(BadCredentials, match="accept no passwords"):
        sasl_of(ALICE, ["OAUTHBEARER"])
    with pytest.raises(BadCredentials, match="accept no bearer tokens"):
        sasl_of(Token("abc"), ["PLAIN"])


def test_a_token_lives_as_long_as_it_says() -> None:
    token = jwt(sub="alice", exp=2_000_000_000)
    sasl = sasl_of(Token(token), ["OAUTHBEARER"])

    assert sasl.mechanism == "OAUTHBEARER"
    assert sasl.tokens == TokenSource(token)
    assert TokenSource(token)("")[:2] == (token, 2_000_000_000.0)
    assert TokenSource("opaque")("")[1] > time.time()
    assert token not in repr(sasl)
