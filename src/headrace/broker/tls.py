"""TLS of a broker: contexts for listeners and connections to other brokers, reloaded when files change."""

import asyncio
import ssl
from collections.abc import Mapping
from typing import Final

from headrace.broker.config import BrokerConfig
from headrace.broker.settings import InvalidSetting, Value, show
from headrace.security.listeners import Listener
from headrace.security.pem import InvalidTlsSetting
from headrace.security.principal_mapping import PrincipalMapper
from headrace.security.tls import ReloadingContext, TlsSettings

HOST_CHECK: Final = "ssl.endpoint.identification.algorithm"
SETTINGS: Final = (
    "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.enabled.protocols",
    HOST_CHECK,
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.protocol",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
)


class BrokerTls:
    """The contexts of a broker. InvalidSetting if the settings or files of a listener are unusable."""

    def __init__(self, config: BrokerConfig) -> None:
        self._listening: dict[str, ReloadingContext] = {}  # what servers got; its `current` is replaced
        self._listeners: dict[str, ReloadingContext] = {}
        self._peers: ReloadingContext | None = None
        self._principals: dict[str, PrincipalMapper] = {}
        self._settings: dict[str, TlsSettings] = {}
        self.use_config(config)

    def use_config(self, config: BrokerConfig) -> None:
        """Apply changed settings to new connections; existing ones keep theirs."""
        names = [each.name for each in config.listeners if each.security_protocol.uses_tls]
        settings = {name: tls_settings(config, name) for name in names}
        try:
            for name, of_listener in settings.items():
                rules = str(config.of_listener(name, "ssl.principal.mapping.rules"))
                self._principals[name] = PrincipalMapper(rules)
                if self._settings.get(name) == of_listener:
                    continue
                context = self._listeners[name] = ReloadingContext.for_listener(of_listener)
                self._listening.setdefault(name, context).current = context.current
                if name == config.inter_broker_listener:
                    self._peers = ReloadingContext.for_connections(of_listener)
        except InvalidTlsSetting as error:
            raise InvalidSetting(str(error)) from error
        self._settings = settings

    def of_listener(self, listener: Listener) -> ssl.SSLContext | None:
        """Return the context of a listener; None if it does not use TLS."""
        return self._listening.get(listener.name)

    @property
    def of_peers(self) -> ssl.SSLContext | None:
        """The context of connections to other brokers; None if they do not use TLS."""
        return self._peers

    def principals(self, listener: Listener) -> PrincipalMapper:
        """Return how a listener names the clients that show a certificate."""
        return self._principals[listener.name]

    async def refresh(self) -> None:
        """Load certificates whose files have changed."""
        for name, context in list(self._listeners.items()):
            if await asyncio.to_thread(context.refresh):
                self._listening[name].current = context.current
        if self._peers is not None:
            await asyncio.to_thread(self._peers.refresh)


def tls_settings(config: BrokerConfig, listener: str) -> TlsSettings:
    """Return the TLS settings of a listener; InvalidSetting names the one that is invalid."""
    try:
        return parse_tls({name: config.of_listener(listener, name) for name in SETTINGS})
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
