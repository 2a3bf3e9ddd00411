"""SCRAM on the broker's side: RFC 7677's example, our own client, and clients that cheat."""

import base64
from contextlib import suppress
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.security.principals import Principal
from headrace.security.sasl.exchange import SCRAM_SHA_256, SCRAM_SHA_512, AuthenticationFailed, User
from headrace.security.sasl.scram import (
    FakeChallenge,
    ScramClient,
    ScramCredential,
    ScramExchange,
    TokenAccount,
)

SALT: Final = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
SERVER_NONCE: Final = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST: Final = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
CHALLENGE: Final = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL: Final = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SIGNATURE: Final = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
MECHANISMS: Final = (SCRAM_SHA_256, SCRAM_SHA_512)
OWNER: Final = Principal("CN=carol")


def fake_challenge(name: str) -> FakeChallenge:
    return FakeChallenge(b"salt of " + name.encode(), 8192)


def exchange(
    mechanism: str = SCRAM_SHA_256,
    users: dict[str, str] | None = None,
    nonce: str | None = SERVER_NONCE,
    tokens: dict[str, str] | None = None,
) -> ScramExchange:
    known = {
        name: ScramCredential.of_password(mechanism, password, salt=SALT)
        for name, password in ({"user": "pencil"} if users is None else users).items()
    }
    accounts = {
        token_id: TokenAccount(ScramCredential.of_password(mechanism, password, salt=SALT), OWNER, 5000)
        for token_id, password in (tokens or {}).items()
    }
    return ScramExchange(
        mechanism, known.get, fake_challenge=fake_challenge, token_of=accounts.get, nonce=nonce
    )


def authenticate(server: ScramExchange, name: str, password: str, *, is_token: bool) -> User | None:
    """Authenticate with our client; return who it is then."""
    client = ScramClient(SCRAM_SHA_256, name, password, is_token=is_token)
    proof = client.prove(server.respond(client.first().encode()).decode())
    assert server.respond(proof.encode()) == client.expected
    return server.user


def test_the_example_of_rfc_7677() -> None:
    server = exchange()

    assert server.respond(FIRST) == CHALLENGE
    assert server.user is None
    assert server.respond(FINAL) == SIGNATURE
    assert server.user == User("user")


@pytest.mark.parametrize("mechanism", MECHANISMS)
@given(
    name=st.text(min_size=1, max_size=20).filter(lambda name: "\0" not in name),
    password=st.text(min_size=1, max_size=20),
)
def test_our_client_proves_its_password_and_checks_ours(mechanism: str, name: str, password: str) -> None:
    server = exchange(mechanism, {name: password}, nonce=None)
    client = ScramClient(mechanism, name, password)

    challenge = server.respond(client.first().encode())
    signature = server.respond(client.prove(challenge.decode()).encode())

    assert signature == client.expected
    assert server.user == User(name)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("name", "password"), [("user", "wrong"), ("nobody", "pencil")])
def test_an_unknown_user_is_refused_as_late_and_in_the_same_words_as_a_wrong_password(
    mechanism: str, name: str, password: str
) -> None:
    server = exchange(mechanism)
    client = ScramClient(mechanism, name, password)
    proof = client.prove(server.respond(client.first().encode()).decode())

    with pytest.raises(
        AuthenticationFailed, match=f"invalid credentials with SASL mechanism {mechanism}$"
    ) as error:
        server.respond(proof.encode())
    assert error.value.user == name
    assert server.user is None


@pytest.mark.parametrize("is_token", [True, False])
def test_a_token_is_accepted_with_the_extension_and_without(is_token: bool) -> None:
    server = exchange(nonce=None, tokens={"id": "hmac"})

    assert authenticate(server, "id", "hmac", is_token=is_token) == User("CN=carol", 5000, by_token=True)


@pytest.mark.parametrize("is_token", [True, False])
def test_a_token_needs_its_hmac(is_token: bool) -> None:
    server = exchange(nonce=None, tokens={"id": "hmac"})

    with pytest.raises(AuthenticationFailed, match="invalid credentials"):
        authenticate(server, "id", "another", is_token=is_token)
    assert server.user is None


def test_a_user_of_the_same_name_is_not_a_token_without_the_extension() -> None:
    def server() -> ScramExchange:
        return exchange(nonce=None, users={"id": "password"}, tokens={"id": "hmac"})

    assert authenticate(server(), "id", "password", is_token=False) == User("id")
    assert authenticate(server(), "id", "hmac", is_token=True) == User("CN=carol", 5000, by_token=True)
    for password, is_token in (("hmac", False), ("password", True)):
        with pytest.raises(AuthenticationFailed, match="invalid credentials"):
            authenticate(server(), "id", password, is_token=is_token)


@given(st.binary(max_size=200), st.binary(max_size=200), st.booleans())
def test_no_bytes_authenticate_as_a_token_without_its_hmac(
    first: bytes, second: bytes, extension: bool
) -> None:
    server = exchange(tokens={"id": "hmac"})
    begin = b"n,,n=id,r=abc" + (b",tokenauth=true" if extension else b"")
    for message in (first, begin, second):
        with suppress(AuthenticationFailed):
            server.respond(message)
    assert server.user is None


def test_the_salt_of_an_unknown_user_is_always_the_same_and_another_for_another_name() -> None:
    def salt(name: bytes) -> bytes:
        return exchange().respond(b"n,,n=%s,r=abc" % name).split(b",")[1]

    assert salt(b"nobody") == salt(b"nobody") != salt(b"no-one")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xff",
        b"y,,n=user,r=abc",
        b"p=tls-unique,,n=user,r=abc",
        b"n,,n=,r=abc",
        b"n,,n=us=er,r=abc",
        b"n,,n=user",
        b"n,,n=user,r=",
        b"n,,m=ext,n=user,r=abc",
        b"n,a=admin,n=user,r=abc",
    ],
)
def test_a_malformed_first_message_is_refused(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        exchange().respond(message)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        FINAL.replace(b"biws", b"eSws"),
        FINAL.replace(b"rOpr", b"rOpp"),
        FINAL.replace(b"dHzb", b"dHzc"),
        FINAL[:-4],
        FINAL + b"AAAA",
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=AA==",
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p==",
    ],
)
def test_a_final_message_that_was_changed_is_refused(message: bytes) -> None:
    server = exchange()
    server.respond(FIRST)

    with pytest.raises(AuthenticationFailed):
        server.respond(message)
    assert server.user is None


def test_an_exchange_ends_with_its_user() -> None:
    server = exchange()
    server.respond(FIRST)
    server.respond(FINAL)

    with pytest.raises(AuthenticationFailed, match="complete"):
        server.respond(FINAL)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_bytes_are_refused_or_answered(first: bytes, second: bytes) -> None:
    server = exchange()
    for message in (first, FIRST, second):
        with suppress(AuthenticationFailed):
            server.respond(message)
    assert server.user is None


def test_a_credential_is_stored_as_kafka_stores_it() -> None:
    credential = ScramCredential.of_password(SCRAM_SHA_256, "pencil", salt=SALT, iterations=8192)
    text = credential.encode()

    assert text.startswith("salt=W22ZaJ0SNY7soEsUEjb6gQ==,stored_key=")
    assert text.endswith(",iterations=8192")
    assert ScramCredential.decode(text) == credential
    assert "pencil" not in text + repr(credential)
    for damaged in (
        "",
        "salt=W22ZaJ0SNY7soEsUEjb6gQ==",
        text.replace("8192", "many"),
        text.replace("==", "?"),
    ):
        with pytest.raises(ValueError, match="a SCRAM credential has"):
            ScramCredential.decode(damaged)
