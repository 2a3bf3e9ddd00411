"""OAUTHBEARER on the broker's side: messages, and tokens that are valid or not."""

import base64
import hmac
import json
from contextlib import suppress
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from headrace.security.sasl.exchange import AuthenticationFailed, User
from headrace.security.sasl.oauthbearer import InvalidToken, OAuthBearerExchange
from headrace.security.sasl.tokens import MAX_TOKEN_CHARS, TokenRules, TokenValidator

NOW_S: Final = 1_700_000_000
KEY: Final = ECKey.generate_key("P-256", {"kid": "one"})
OTHER: Final = ECKey.generate_key("P-256", {"kid": "one"})
CLAIMS: Final = {"sub": "alice", "exp": NOW_S + 600, "iss": "us", "aud": "headrace", "scope": "read write"}
RULES: Final = TokenRules(audiences=("headrace", "kafka"), issuer="us", scopes=("read",))


def validator(rules: TokenRules = RULES, keys: KeySet | None = None) -> TokenValidator:
    known = keys or KeySet.import_key_set({"keys": [KEY.as_dict(private=False)]})
    return TokenValidator(rules, lambda: known, lambda: None, lambda: NOW_S * 1000)


def token(key: Any = KEY, header: dict[str, Any] | None = None, **claims: Any) -> str:
    given = {name: value for name, value in (CLAIMS | claims).items() if value is not None}
    return jwt.encode({"alg": "ES256", "kid": "one"} | (header or {}), given, key)


def test_a_valid_token_names_its_user_and_its_end() -> None:
    assert validator()(token()) == User("alice", expires_ms=(NOW_S + 600) * 1000)
    assert validator(TokenRules(subject_claim="name"))(token(name="bob")).name == "bob"
    assert validator(TokenRules(scopes=("a",), scope_claim="scp"))(token(scp=["a", "b"])).name == "alice"


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": NOW_S - 31}, "has expired"),
        ({"exp": None}, "does not expire"),
        ({"exp": "tomorrow"}, "is not a time"),
        ({"exp": 1 << 70}, "is not a time"),
        ({"nbf": NOW_S + 31}, "not valid yet"),
        ({"iat": NOW_S + 31}, "not valid yet"),
        ({"iss": "them"}, "another issuer"),
        ({"aud": "billing"}, "another audience"),
        ({"aud": ["billing", 7]}, "another audience"),
        ({"aud": None}, "another audience"),
        ({"scope": "write"}, "lacks scope read"),
        ({"scope": 7}, "lacks scope read"),
        ({"sub": " "}, "no claim sub"),
        ({"sub": 7}, "no claim sub"),
    ],
)
def test_a_claim_that_is_wrong_is_named(claims: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidToken, match=why):
        validator()(token(**claims))


def test_clocks_may_differ_by_a_little() -> None:
    assert validator()(token(exp=NOW_S - 29, nbf=NOW_S + 29)).name == "alice"


def encoded(part: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


def test_only_trusted_keys_and_asymmetric_algorithms_sign() -> None:
    unsigned = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9."
    said = f"{encoded({'alg': 'HS256', 'kid': 'one'})}.{encoded(CLAIMS)}"
    signature = hmac.digest(KEY.as_pem(private=False), said.encode(), "sha256")
    shared = f"{said}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"
    for each in (token(OTHER), unsigned, shared, token()[:-4] + "AAAA", "", "a.b.c", "é" * 10):
        with pytest.raises(InvalidToken, match="signature is not valid"):
            validator()(each)
    with pytest.raises(InvalidToken, match="more than"):
        validator()("a" * (MAX_TOKEN_CHARS + 1))


def test_an_unknown_key_may_be_a_new_one() -> None:
    wanted = []
    made = TokenValidator(RULES, lambda: KeySet([KEY]), lambda: wanted.append(1), lambda: NOW_S * 1000)
    with pytest.raises(InvalidToken, match="unknown key"):
        made(token(header={"kid": "two"}))

    assert wanted == [1]


def test_without_keys_nobody_enters() -> None:
    with pytest.raises(InvalidToken, match="are not known"):
        TokenValidator(RULES, lambda: None, lambda: None, lambda: 0)(token())


# -- messages ----------------------------------------------------------------------------------


def message(value: str, prefix: str = "n,,", more: str = "") -> bytes:
    return f"{prefix}\x01auth=Bearer {value}\x01{more}\x01".encode()


@pytest.mark.parametrize(
    "sent",
    [
        message(token()),
        message(token(), prefix="n,a=alice,"),
        message(token(), more="traceId=7\x01"),
        message(token()).replace(b"Bearer", b"bearer"),
    ],
)
def test_a_bearer_may_enter(sent: bytes) -> None:
    server = OAuthBearerExchange(validator())

    assert server.respond(sent) == b""
    assert server.user == User("alice", expires_ms=(NOW_S + 600) * 1000)


def test_a_refusal_is_told_first_and_final_after_its_acknowledgement() -> None:
    server = OAuthBearerExchange(validator())

    assert server.respond(message(token(exp=NOW_S - 100))) == b'{"status":"invalid_token"}'
    with pytest.raises(AuthenticationFailed, match="OAUTHBEARER: the token has expired"):
        server.respond(b"\x01")
    assert server.user is None


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\xff",
        b"n,,\x01\x01",
        b"n,,\x01auth=Basic YWxpY2U6cA==\x01\x01",
        b"n,,\x01token=a\x01\x01",
        message(token(), prefix="y,,"),
        message(token(), prefix="n,a=bob,"),
    ],
)
def test_other_messages_are_refused(sent: bytes) -> None:
    server = OAuthBearerExchange(validator())
    with pytest.raises(AuthenticationFailed):
        server.respond(sent)
    assert server.user is None


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_or_answered(sent: bytes) -> None:
    server = OAuthBearerExchange(validator())
    with suppress(AuthenticationFailed):
        server.respond(sent)
    assert server.user is None
