"""Signed tokens (JWT): which are valid, and whom they name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from headrace.security.sasl.exchange import User
from headrace.security.sasl.oauthbearer import InvalidToken

if TYPE_CHECKING:
    from joserfc.jwk import KeySet

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
MAX_TOKEN_CHARS: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRules:
    """What a valid token has to say."""

    audiences: tuple[str, ...] = ()  # one of these, if any is given
    issuer: str | None = None
    scopes: tuple[str, ...] = ()  # all of these
    scope_claim: str = "scope"
    subject_claim: str = "sub"
    clock_skew_s: float = 30.0

    def user(self, claims: dict[str, Any], now_s: float) -> User:
        """Return the user of a token whose signature is valid; InvalidToken says what is wrong."""
        expires_s = _time(claims, "exp")
        if expires_s is None:
            raise InvalidToken("the token does not expire")
        if now_s - self.clock_skew_s >= expires_s:
            raise InvalidToken("the token has expired")
        for name in ("nbf", "iat"):
            begins_s = _time(claims, name)
            if begins_s is not None and begins_s > now_s + self.clock_skew_s:
                raise InvalidToken(f"the token is not valid yet ({name})")
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise InvalidToken("the token is of another issuer")
        if self.audiences and not set(self.audiences) & set(_texts(claims, "aud")):
            raise InvalidToken("the token is for another audience")
        missing = set(self.scopes) - set(_texts(claims, self.scope_claim))
        if missing:
            raise InvalidToken(f"the token lacks scope {', '.join(sorted(missing))}")
        subject = claims.get(self.subject_claim)
        if not isinstance(subject, str) or not subject.strip():
            raise InvalidToken(f"the token has no claim {self.subject_claim}")
        return User(subject.strip(), expires_ms=int(expires_s * 1000))


class TokenValidator:
    """Validates tokens by the newest `keys`; None means that none could be loaded yet."""

    def __init__(
        self,
        rules: TokenRules,
        keys: Callable[[], "KeySet | None"],
        on_unknown_key: Callable[[], None],
        now_ms: Callable[[], int],
    ) -> None:
        """Call `on_unknown_key` for a token that was signed by a key that is not there: it may be new."""
        self._rules = rules
        self._keys = keys
        self._on_unknown_key = on_unknown_key
        self._now_ms = now_ms

    def __call__(self, token: str) -> User:
        keys = self._keys()
        if keys is None:
            raise InvalidToken("the keys of the issuer are not known")
        from joserfc import jwt  # noqa: PLC0415  whoever has loaded the keys has imported it
        from joserfc.errors import InvalidKeyIdError, JoseError  # noqa: PLC0415

        if len(token) > MAX_TOKEN_CHARS:
            raise InvalidToken(f"the token has more than {MAX_TOKEN_CHARS} characters")
        try:
            claims = jwt.decode(token, keys, algorithms=ALGORITHMS).claims
        except InvalidKeyIdError as error:
            self._on_unknown_key()
            raise InvalidToken("the token is signed by an unknown key") from error
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise InvalidToken("the token's signature is not valid") from error
        if not isinstance(claims, dict):
            raise InvalidToken("the token has no claims")
        return self._rules.user(claims, self._now_ms() / 1000)


def _time(claims: dict[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1 << 40:
        raise InvalidToken(f"the token's claim {name} is not a time")
    return float(value)


def _texts(claims: dict[str, Any], name: str) -> list[str]:
    """Return a claim that is a list of texts, or one text with spaces in between."""
    value = claims.get(name)
    if isinstance(value, str):
        return value.split()
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
