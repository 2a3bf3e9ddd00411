"""How a broker authenticates to ZooKeeper, by its settings."""

from pathlib import Path
from typing import Final

from headrace.broker.security.tls import parse_tls
from headrace.broker.settings.config import BrokerConfig
from headrace.broker.settings.security import ZOOKEEPER_SETTINGS
from headrace.broker.settings.setting import InvalidSetting
from headrace.coordination.client_security import ClientSecurity
from headrace.coordination.credentials import Credential
from headrace.coordination.errors import CoordinationError
from headrace.security.pem import InvalidTlsSetting

_PREFIX: Final = "zookeeper."


def zookeeper_security(config: BrokerConfig) -> ClientSecurity:
    """Return how a broker authenticates to ZooKeeper; InvalidSetting names the setting that is wrong.

    This reads the JAAS file, so call it in a thread.
    """
    tls = None
    if config.flag("zookeeper.ssl.client.enable"):
        names = [setting.name.removeprefix(_PREFIX) for setting in ZOOKEEPER_SETTINGS]
        try:
            tls = parse_tls(
                {name: config.values[_PREFIX + name] for name in names if name.startswith("ssl.")}
            )
        except InvalidTlsSetting as error:
            raise InvalidSetting(f"{_PREFIX}{error}") from error
    credential = _credential(config)
    set_acl = config.flag("zookeeper.set.acl")
    if set_acl and credential is None and (tls is None or tls.keystore is None):
        raise InvalidSetting(
            "zookeeper.set.acl=true: znodes can only be protected for a user; set "
            "zookeeper.sasl.jaas.file, zookeeper.sasl.jaas.config or zookeeper.ssl.keystore.location"
        )
    scheme = config.text("zookeeper.auth.scheme")
    return ClientSecurity(tls=tls, credential=credential, scheme=scheme, set_acl=set_acl)


def _credential(config: BrokerConfig) -> Credential | None:
    file, inline = config.values["zookeeper.sasl.jaas.file"], config.values["zookeeper.sasl.jaas.config"]
    if file and inline:
        raise InvalidSetting(
            "zookeeper.sasl.jaas.file cannot be set with zookeeper.sasl.jaas.config: remove one of them"
        )
    try:
        if file:
            return Credential.of_file(Path(str(file)))
        return Credential.of_config(str(inline), "zookeeper.sasl.jaas.config") if inline else None
    except CoordinationError as error:
        raise InvalidSetting(str(error)) from error
