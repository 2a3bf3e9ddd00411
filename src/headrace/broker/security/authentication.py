"""Authentication by SASL: the mechanisms of each listener, from the settings and the users in ZooKeeper."""

import hmac
import logging
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from headrace.broker.image import ClusterImage
from headrace.broker.meters import Meters
from headrace.broker.security.token_keys import SETTING as JWKS_URL
from headrace.broker.security.token_keys import TokenKeys
from headrace.broker.security.token_store import TokenStore
from headrace.broker.settings.config import BrokerConfig
from headrace.broker.settings.setting import InvalidSetting, show
from headrace.security.listeners import Listener
from headrace.security.sasl import exchange, scram
from headrace.security.sasl.jaas import jaas_options
from headrace.security.sasl.oauthbearer import OAuthBearerExchange
from headrace.security.sasl.plain import PlainExchange, passwords
from headrace.security.sasl.session import Mechanism, SaslSession
from headrace.security.sasl.tokens import TokenRules, TokenValidator
from headrace.system.extras import SECURITY, is_installed

logger = logging.getLogger(__name__)

SUPPORTED: Final = (exchange.PLAIN, exchange.SCRAM_SHA_256, exchange.SCRAM_SHA_512, exchange.OAUTHBEARER)


class Authentication:
    """Creates the SASL session of every connection to a listener that requires one."""

    def __init__(self, config: BrokerConfig, image: ClusterImage, now_ms: Callable[[], int]) -> None:
        self._image = image
        self._now_ms = now_ms
        self._shapes = {mechanism: scram.ScramShapes() for mechanism in scram.ALGORITHMS}
        self.secret = secrets.token_bytes(32)  # until the cluster's is known
        self._token_keys: dict[str, TokenKeys] = {}  # by URL
        self.tokens: TokenStore | None = None  # delegation tokens, once they are read
        self._mechanisms: dict[str, dict[str, Mechanism]] = {}
        self.use_config(config)

    def use_config(self, config: BrokerConfig) -> None:
        """Apply changed settings to the next connections; InvalidSetting if they are contradictory."""
        self._mechanisms = self.mechanisms(config)

    def mechanisms(self, config: BrokerConfig) -> dict[str, dict[str, Mechanism]]:
        """Return the mechanisms of each listener by its name; InvalidSetting if there is a contradiction."""
        mechanisms = {}
        for listener in [each.name for each in config.listeners if each.security_protocol.uses_sasl]:
            enabled = config.of_listener(listener, "sasl.enabled.mechanisms")
            assert isinstance(enabled, tuple), enabled
            mechanisms[listener] = {name: self._mechanism(config, listener, name) for name in enabled}
            if not enabled:
                raise InvalidSetting(
                    f"sasl.enabled.mechanisms: listener {listener} needs one of {', '.join(SUPPORTED)}"
                )
        return mechanisms

    @property
    def needs_secret(self) -> bool:
        """Whether a listener has users whose names must not be guessed."""
        return any(mechanism.keys() & scram.ALGORITHMS.keys() for mechanism in self._mechanisms.values())

    def session(self, listener: Listener) -> SaslSession | None:
        """Return the session of a new connection; None if the listener does not use SASL."""
        if not listener.security_protocol.uses_sasl:
            return None
        return SaslSession(self._mechanisms[listener.name], self._now_ms)

    def _mechanism(self, config: BrokerConfig, listener: str, name: str) -> Mechanism:
        if name not in SUPPORTED:
            raise InvalidSetting(
                f"sasl.enabled.mechanisms: {name} is not supported, only {', '.join(SUPPORTED)}"
            )
        limit_ms = config.of_listener(listener, "connections.max.reauth.ms", mechanism=name)
        assert isinstance(limit_ms, int), limit_ms
        if name == exchange.OAUTHBEARER:
            validate = self._token_validator(config, listener)
            return Mechanism(lambda: OAuthBearerExchange(validate), limit_ms)
        if name == exchange.PLAIN:
            known = plain_users(config, listener)
            return Mechanism(lambda: PlainExchange(known.get), limit_ms)
        begin = partial(
            scram.ScramExchange,
            name,
            lambda user: _decoded(self._image.users.get(user, {}).get(name)),
            fake_challenge=partial(self._fake_challenge, name),
            token_of=lambda token_id: None if self.tokens is None else self.tokens.account(name, token_id),
        )
        return Mechanism(begin, limit_ms)

    def _token_validator(self, config: BrokerConfig, listener: str) -> TokenValidator:
        def text(setting: str) -> str | None:
            value = config.of_listener(
                listener, f"sasl.oauthbearer.{setting}", mechanism=exchange.OAUTHBEARER
            )
            return show(value) or None

        url = text("jwks.endpoint.url")
        if url is None:
            raise InvalidSetting(f"{JWKS_URL} is missing: OAUTHBEARER needs the keys that sign tokens")
        if not is_installed(SECURITY):
            raise InvalidSetting(f"{JWKS_URL}={url} needs {SECURITY.brings}: {SECURITY.command}")
        keys = self._token_keys.get(url)
        if keys is None:
            keys = self._token_keys[url] = TokenKeys(url, int(text("jwks.endpoint.refresh.ms") or 0) / 1000)
        rules = TokenRules(
            audiences=tuple(filter(None, (text("expected.audience") or "").split(","))),
            issuer=text("expected.issuer"),
            scopes=tuple((text("scope") or "").split()),
            scope_claim=text("scope.claim.name") or "scope",
            subject_claim=text("sub.claim.name") or "sub",
            clock_skew_s=float(text("clock.skew.seconds") or 0),
        )
        return TokenValidator(rules, lambda: keys.keys, keys.want, self._now_ms)

    async def refresh(self) -> None:
        """Load keys of tokens that are due."""
        for keys in list(self._token_keys.values()):
            await keys.refresh()

    def user_changed(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Note that the configs of a user have changed: challenges of unknown users resemble the others'."""
        for mechanism, shapes in self._shapes.items():
            before, after = _decoded(old.get(mechanism)), _decoded(new.get(mechanism))
            shapes.replace([] if before is None else [before], [] if after is None else [after])

    def _fake_challenge(self, mechanism: str, user: str) -> scram.FakeChallenge:
        key = hmac.digest(self.secret, f"{mechanism} {user}".encode(), "sha256")
        shape = self._shapes[mechanism].choose(key)
        return scram.FakeChallenge(shape.salt(key), shape.iterations)


def _decoded(text: str | None) -> scram.ScramCredential | None:
    """Return a stored credential; None if there is none, or if it is malformed: nobody can use it then."""
    try:
        return None if text is None else scram.ScramCredential.decode(text)
    except ValueError:
        return None


def refuse(error: exchange.AuthenticationFailed, address: str, meters: Meters, config: BrokerConfig) -> float:
    """Count and log a failed authentication; return how many seconds later the client may know of it."""
    meters.failed_authentications += 1
    # A name that nobody has confirmed must not write lines of its own into the log.
    logger.warning("user %.100r from %s failed to authenticate: %s", error.user, address, error)
    return config.integer("connection.failed.authentication.delay.ms") / 1000


def plain_users(config: BrokerConfig, listener: str) -> Mapping[str, str]:
    """Return the passwords of a listener's users for PLAIN, from its sasl.jaas.config."""
    jaas = config.of_listener(listener, "sasl.jaas.config", mechanism=exchange.PLAIN)
    found = passwords(jaas_options(str(jaas or "")))
    if not found:
        raise InvalidSetting(
            f"listener.name.{listener.lower()}.plain.sasl.jaas.config: PLAIN needs users, as in "
            'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="...";'
        )
    return found
