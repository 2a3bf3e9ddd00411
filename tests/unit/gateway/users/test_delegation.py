"""The token of a principal: when it is renewed, and when another one is needed."""

from typing import Any, Self, cast

import pytest

from headrace.client.admin.tokens import Token, TokenAdmin
from headrace.client.errors import AuthenticationFailed, ClientError, Unreachable
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.security import PLAINTEXT, Security
from headrace.gateway.users.logins import LIFETIME_MS, VERIFIED_S, LoginEnded, TokenLogin
from headrace.security.principals import Principal

HOUR_S = LIFETIME_MS / 1000
ISSUED_MS = 1_700_000_000_000  # by the brokers' clock, which has nothing to do with ours


class World:
    """A broker with its clock, which renews tokens up to their end."""

    def __init__(self, *, lifetimes: float = 3.0) -> None:
        self.now_s = 50.0
        self.began_s = self.now_s
        self.expired: list[Token] = []
        self.renewals = 0
        self.refuses: Exception | None = None
        self.accepts = True
        hour_ms = int(HOUR_S * 1000)
        token = Token(
            token_id="id",
            hmac=b"secret",
            owner=Principal("CN=carol"),
            requester=Principal("gateway"),
            issue_ms=ISSUED_MS,
            expiry_ms=ISSUED_MS + hour_ms,
            max_ms=ISSUED_MS + int(lifetimes * hour_ms),
        )
        self.login = TokenLogin(
            token,
            PLAINTEXT,
            cast("TokenAdmin", self),
            self._connect,
            began_s=self.began_s,
            now_s=lambda: self.now_s,
        )

    def renew(self, token: Token, period_ms: int) -> Token:
        if self.refuses is not None:
            raise self.refuses
        self.renewals += 1
        now_ms = ISSUED_MS + int((self.now_s - self.began_s) * 1000)
        return Token(
            token_id=token.token_id,
            hmac=token.hmac,
            owner=token.owner,
            requester=token.requester,
            issue_ms=token.issue_ms,
            expiry_ms=min(token.max_ms, now_ms + period_ms),
            max_ms=token.max_ms,
        )

    def expire(self, token: Token) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.expired.append(token)

    def _connect(self, _security: Security) -> Brokers:
        return cast("Brokers", self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def any_metadata(self, within_s: float) -> Any:
        assert within_s > 0
        if not self.accepts:
            raise AuthenticationFailed("refused")


def test_a_token_is_renewed_at_half_of_its_lifetime() -> None:
    world = World()
    assert world.login.verified_for_s == VERIFIED_S
    world.now_s += HOUR_S / 2 - 20
    world.login.verify()
    assert world.renewals == 0
    assert world.login.verified_for_s == pytest.approx(20)

    world.now_s += 20
    world.login.verify()
    assert world.renewals == 1
    assert world.login.verified_for_s == VERIFIED_S
    world.now_s += HOUR_S / 2
    world.login.verify()
    assert world.renewals == 2


def test_another_token_is_needed_before_the_end_of_the_longest_lifetime() -> None:
    world = World(lifetimes=1.2)
    world.now_s += HOUR_S / 2
    world.login.verify()  # 0.7 hours are left now
    world.now_s += 0.3 * HOUR_S
    world.login.verify()
    world.now_s += 0.1 * HOUR_S
    with pytest.raises(LoginEnded):
        world.login.verify()
    assert world.renewals == 1


@pytest.mark.parametrize(
    ("error", "raised"),
    [(ClientError("DELEGATION_TOKEN_NOT_FOUND"), LoginEnded), (Unreachable("nobody"), Unreachable)],
)
def test_a_token_that_cannot_be_renewed_has_ended_unless_no_broker_answers(
    error: Exception, raised: type[Exception]
) -> None:
    world = World()
    world.refuses = error
    world.now_s += HOUR_S
    with pytest.raises(raised):
        world.login.verify()


def test_a_token_that_brokers_refuse_has_ended() -> None:
    world = World()
    world.accepts = False
    with pytest.raises(LoginEnded):
        world.login.verify()


def test_the_end_of_a_login_deletes_its_token_if_a_broker_answers() -> None:
    world = World()
    world.refuses = Unreachable("nobody")
    world.login.end()
    world.refuses = None
    world.login.end()
    assert [each.token_id for each in world.expired] == ["id"]
    assert "secret" not in repr(world.expired)
