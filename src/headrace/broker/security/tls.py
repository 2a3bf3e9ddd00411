"""TLS of a broker: contexts for listeners and connections to other brokers, reloaded when files change."""

import asyncio
import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from headrace.broker.settings.config import BrokerConfig
from headrace.broker.settings.security import SECURITY_SETTINGS
from headrace.broker.settings.setting import InvalidSetting, Value, show
from headrace.security.certificate_changes import check_alternative_names, check_handshake, check_subject
from headrace.security.listeners import Listener
from headrace.security.pem import InvalidTlsSetting
from headrace.security.principal_mapping import PrincipalMapper
from headrace.security.tls import ReloadingContext, TlsSettings

CLIENT_AUTH: Final = "ssl.client.auth"
HOST_CHECK: Final = "ssl.endpoint.identification.algorithm"
SETTINGS: Final = [setting.name for setting in SECURITY_SETTINGS if setting.name.startswith("ssl.")]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _ListenerTls:
    """TLS of one listener, made of its settings."""

    settings: TlsSettings
    rules: str
    principals: PrincipalMapper
    context: ReloadingContext
    peers: ReloadingContext | None  # for connections to other brokers, if they connect to this listener

    @classmethod
    def make(cls, settings: TlsSettings, rules: str, *, is_inter_broker: bool) -> "_ListenerTls":
        """Read the files; InvalidTlsSetting if one is unusable."""
        context = ReloadingContext.for_listener(settings)
        peers = ReloadingContext.for_connections(settings) if is_inter_broker else None
        return cls(settings, rules, PrincipalMapper(rules), context, peers)


class BrokerTls:
    """The contexts of a broker. InvalidSetting if the settings or files of a listener are unusable."""

    def __init__(self, config: BrokerConfig) -> None:
        self._listening: dict[str, ReloadingContext] = {}  # what servers got; its `current` is replaced
        self._listeners: dict[str, _ListenerTls] = {}
        self._checked: dict[str, _ListenerTls] = {}  # by `check`
        self.use_config(config)

    def use_config(self, config: BrokerConfig) -> None:
        """Apply changed settings to new connections; existing ones keep theirs."""
        self._listeners = self._make(config)
        self._checked = {}
        for name, made in self._listeners.items():
            self._listening.setdefault(name, made.context).current = made.context.current

    def check(self, config: BrokerConfig) -> None:
        """Raise InvalidSetting if `config` cannot replace the current one while the broker runs.

        This method reads files: call it in a thread. What it has read is used if `config` is used next.
        """
        made = self._make(config)
        try:
            for name, new in made.items():
                old = self._listeners.get(name)
                if old is not None and old is not new:
                    chains = old.context.current.chain, new.context.current.chain
                    if not config.of_listener(name, "ssl.allow.dn.changes"):
                        check_subject(*chains)
                    if not config.of_listener(name, "ssl.allow.san.changes"):
                        check_alternative_names(*chains)
                    if new.peers is not None:
                        _check_connections(old, new)
        except InvalidTlsSetting as error:
            raise InvalidSetting(f"listener {name}: {error}") from error
        self._checked = made

    def _make(self, config: BrokerConfig) -> dict[str, _ListenerTls]:
        names = [listener.name for listener in config.listeners if listener.security_protocol.uses_tls]
        return {name: self._make_one(config, name) for name in names}

    def _make_one(self, config: BrokerConfig, name: str) -> _ListenerTls:
        """Return what is in use or checked already if the settings are the same."""
        settings = tls_settings(config, name)
        rules = str(config.of_listener(name, "ssl.principal.mapping.rules"))
        for known in (self._listeners.get(name), self._checked.get(name)):
            if known is not None and (known.settings, known.rules) == (settings, rules):
                return known
        asked = config.of_listener(name, CLIENT_AUTH)
        if settings.client_auth == ssl.CERT_NONE and asked != "none":
            own = f"listener.name.{name.lower()}.{CLIENT_AUTH}"
            logger.warning(
                "%s=%s has no effect on listener %s, which uses SASL_SSL: %s would have one",
                *(CLIENT_AUTH, asked, name, own),
            )
        try:
            return _ListenerTls.make(settings, rules, is_inter_broker=name == config.inter_broker_listener)
        except InvalidTlsSetting as error:
            raise InvalidSetting(str(error)) from error

    def of_listener(self, listener: Listener) -> ReloadingContext | None:
        """Return the context of a listener; None if it does not use TLS."""
        return self._listening.get(listener.name)

    @property
    def of_peers(self) -> ReloadingContext | None:
        """The context of connections to other brokers; None if they do not use TLS."""
        return next((each.peers for each in self._listeners.values() if each.peers is not None), None)

    def principals(self, listener: Listener) -> PrincipalMapper:
        """Return how a listener names the clients that show a certificate."""
        return self._listeners[listener.name].principals

    async def refresh(self) -> None:
        """Load certificates whose files have changed."""
        for name, each in list(self._listeners.items()):
            if await asyncio.to_thread(each.context.refresh) and self._listeners.get(name) is each:
                self._listening[name].current = each.context.current
            if each.peers is not None:
                await asyncio.to_thread(each.peers.refresh)


def _check_connections(old: _ListenerTls, new: _ListenerTls) -> None:
    """Raise InvalidTlsSetting if brokers with the old and the new settings cannot connect to each other."""
    new_client = replace(new.settings, checks_host=False).client_context()
    check_handshake(old.context.current, new_client)
    try:
        old_client = replace(old.settings, checks_host=False).client_context()
    except InvalidTlsSetting:
        old_client = new_client  # the old files are unusable by now, and may be the reason for the change
    check_handshake(new.context.current, old_client)


def tls_settings(config: BrokerConfig, listener: str) -> TlsSettings:
    """Return the TLS settings of a listener; InvalidSetting names the one that is invalid.

    On a SASL_SSL listener only a client auth of the listener itself counts (KIP-684), as in Kafka.
    """
    values = {name: config.of_listener(listener, name) for name in SETTINGS}
    if config.listener(listener).security_protocol.uses_sasl:
        values[CLIENT_AUTH] = config.values.get(f"listener.name.{listener.lower()}.{CLIENT_AUTH}", "none")
    try:
        return parse_tls(values)
    except InvalidTlsSetting as error:
        raise InvalidSetting(str(error)) from error


def parse_tls(values: Mapping[str, Value | None]) -> TlsSettings:
    """Return the TLS settings with these values; InvalidTlsSetting names the one that is invalid.

    An empty value is as good as none, except that an empty HOST_CHECK means that hosts are not checked.
    """
    given = {name: show(value) for name, value in values.items()}
    return TlsSettings.of(
        {name: text if text or name == HOST_CHECK else None for name, text in given.items()}
    )
