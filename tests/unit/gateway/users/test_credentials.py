"""Credentials in Authorization headers."""

import base64
import json

import pytest

from headrace.gateway.users.credentials import (
    BadCredentials,
    Certificate,
    Password,
    Token,
    fingerprint,
    parse_authorization,
    printable_name,
)
from headrace.security.principals import Principal


def basic(text: str | bytes) -> str:
    data = text.encode() if isinstance(text, str) else text
    return f"Basic {base64.b64encode(data).decode()}"


def jwt(**claims: object) -> str:
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.c2ln"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (basic("alice:wonder:land"), Password("alice", "wonder:land")),
        (basic("änne:pässwörd"), Password("änne", "pässwörd")),
        (basic("alice:x").replace("Basic", "bAsIc"), Password("alice", "x")),
        ("Bearer abc.def-_~+/==", Token("abc.def-_~+/==")),
    ],
)
def test_both_schemes_are_read(header: str, expected: Password | Token) -> None:
    assert parse_authorization([header]) == expected


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        (["Digest x"], "expected Basic or Bearer"),
        (["Basic ???"], "not base64"),
        ([basic(b"\xff:\xff")], "not base64 of USER:PASSWORD in UTF-8"),
        ([basic("alice")], "no colon"),
        ([basic(":secret")], "is empty"),
        ([basic("alice:")], "is empty"),
        ([basic("ali\0ce:secret")], "NUL"),
        ([basic(f"{'a' * 300}:secret")], "at most 256"),
        ([basic(f"a:{'s' * 2000}")], "1024"),
        (["Bearer a\x01b"], "RFC 6750"),
        (["Bearer "], "RFC 6750"),
        ([f"Bearer {'a' * 20_000}"], "at most"),
        (["Bearer a", "Bearer b"], "2 Authorization headers"),
    ],
)
def test_what_no_broker_could_accept_is_refused_without_repeating_it(
    headers: list[str], message: str
) -> None:
    with pytest.raises(BadCredentials, match=message) as refused:
        parse_authorization(headers)
    assert "secret" not in str(refused.value)


def test_no_secret_is_in_a_repr() -> None:
    shown = f"{Password('alice', 'secret')!r} {Token('secret')!r}"
    assert "secret" not in shown
    assert "alice" in shown


def test_a_token_is_named_by_its_subject() -> None:
    assert Token(jwt(sub="alice")).name == "alice"
    assert Token(jwt(sub="a\nb")).name == "a?b"
    assert Token(jwt()).name == Token("opaque").name == Token(jwt(sub=7)).name == "(token)"
    assert Token("e30.W10.c2ln").name == "(token)"  # claims that are no object


def test_a_name_cannot_start_a_line_or_grow_without_end() -> None:
    assert printable_name("a\r\nb\x1b[0m") == "a??b?[0m"
    assert len(printable_name("a" * 300)) == 101


def test_a_fingerprint_is_for_one_secret_and_one_kind_of_credentials() -> None:
    found = {
        fingerprint(b"1", Password("a", "bc")),
        fingerprint(b"1", Password("ab", "c")),
        fingerprint(b"2", Password("a", "bc")),
        fingerprint(b"1", Token("abc")),
        fingerprint(b"1", Certificate(Principal("abc"))),
    }
    assert len(found) == 5
    assert fingerprint(b"1", Password("a", "bc")) in found
