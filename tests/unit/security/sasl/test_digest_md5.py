"""DIGEST-MD5: the example of RFC 2831, both sides against each other, and hostile messages."""

import pytest

from headrace.security.sasl.digest_md5 import (
    MAX_MESSAGE_BYTES,
    DigestMd5Client,
    DigestMd5Server,
    _Proof,
    parse_directives,
)
from headrace.security.sasl.exchange import AuthenticationFailed, User

USERS = {"ann": "secret", "böb": "pässwörd", "日本": "パスワード"}


def test_the_proofs_of_the_example_in_rfc_2831() -> None:
    said = {
        "username": "chris",
        "realm": "elwood.innosoft.com",
        "nonce": "OA6MG9tEQGm2hh",
        "cnonce": "OA6MHXh6VqTrRk",
        "digest-uri": "imap/elwood.innosoft.com",
    }
    proof = _Proof(said, "secret")

    assert proof.of_client == "d388dad90d4bbd760a152321f2143af7"
    assert proof.of_server == "ea40f60335c427b5527b84dbabcdfffd"


@pytest.mark.parametrize(("name", "password"), USERS.items())
def test_client_and_server_prove_to_each_other_that_they_know_the_password(name: str, password: str) -> None:
    server, client = DigestMd5Server(USERS.get), DigestMd5Client(name, password)
    answered = client.respond(server.respond(b""))

    assert client.respond(server.respond(answered)) == b""
    assert client.complete
    assert server.user == User(name)


@pytest.mark.parametrize(("name", "password"), [("ann", "guess"), ("nobody", "secret"), ("ann", "")])
def test_an_unknown_user_and_a_wrong_password_get_the_same_refusal(name: str, password: str) -> None:
    server = DigestMd5Server(USERS.get)
    answered = DigestMd5Client(name, password).respond(server.respond(b""))
    with pytest.raises(AuthenticationFailed, match="invalid credentials") as failed:
        server.respond(answered)
    assert failed.value.user == name
    assert server.user is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"nc=00000001", b"nc=00000002"),
        (b"qop=auth", b"qop=auth-conf"),
        (b"zookeeper/zk", b"imap/zk"),
        (b'cnonce="', b'cnonce2="'),
        (b",response=", b",other="),
        (b"charset=utf-8", b'authzid="root"'),
        (b'nonce="', b'nonce="x'),
    ],
)
def test_a_changed_response_is_refused(before: bytes, after: bytes) -> None:
    server = DigestMd5Server(USERS.get)
    answered = DigestMd5Client("ann", "secret").respond(server.respond(b""))
    assert before in answered
    with pytest.raises(AuthenticationFailed):
        server.respond(answered.replace(before, after, 1))


def test_a_response_cannot_be_used_twice() -> None:
    server = DigestMd5Server(USERS.get)
    answered = DigestMd5Client("ann", "secret").respond(server.respond(b""))
    server.respond(answered)
    with pytest.raises(AuthenticationFailed, match="complete"):
        server.respond(answered)
    other = DigestMd5Server(USERS.get)
    other.respond(b"")
    with pytest.raises(AuthenticationFailed, match="nonce"):
        other.respond(answered)


def test_a_client_detects_a_server_that_does_not_know_the_password() -> None:
    client = DigestMd5Client("ann", "secret")
    client.respond(DigestMd5Server(USERS.get).respond(b""))
    with pytest.raises(AuthenticationFailed, match="does not know the password"):
        client.respond(b"rspauth=" + b"0" * 32)
    assert not client.complete


@pytest.mark.parametrize(
    "message", [b"a", b"a=", b'a="', b"a=1,,b=2", b"a=1,a=2", b"=1", b"\xff", b'a="b"c', b"a=" + b"1" * 5000]
)
def test_malformed_messages(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        parse_directives(message)


def test_quotes_and_spaces() -> None:
    assert parse_directives(b'a = "x\\"y,z" , B=1') == {"a": 'x"y,z', "b": "1"}
    assert MAX_MESSAGE_BYTES == 4096
