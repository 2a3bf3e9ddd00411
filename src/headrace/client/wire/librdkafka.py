"""The security of connections in librdkafka's settings, whichever client's settings it was read from.

librdkafka knows neither truststores nor sasl.jaas.config: stores become PEM, and JAAS options a user with a
password.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from headrace.client.errors import BadSetting, ClientError
from headrace.client.wire.config_providers import resolve
from headrace.client.wire.security import Security
from headrace.client.wire.tls import Tls
from headrace.security.pem import InvalidTlsSetting

_OF_JAVA: Final = (
    "sasl.jaas.config",
    "sasl.oauthbearer.client.credentials.",
    "ssl.truststore.",
    "ssl.keystore.",
    "ssl.enabled.protocols",
)
_OF_SECURITY: Final = (
    "security.protocol",
    "sasl.",
    "ssl.",
    "enable.ssl.certificate.verification",
    "oauth_cb",
)


class TokenNeedsExtension(ClientError):
    """librdkafka cannot authenticate with a delegation token at brokers that require `tokenauth=true`."""

    def __init__(self) -> None:
        super().__init__(
            "these brokers accept a delegation token only with the SCRAM extension tokenauth=true, which "
            "librdkafka cannot send, so it cannot produce or consume for a client certificate: send Basic or "
            "Bearer credentials as well"
        )


def with_librdkafka_security(given: Mapping[str, Any], literal: Collection[str] = ()) -> dict[str, Any]:
    """Return the settings, with those of the Java client's security in librdkafka's form.

    References are resolved, except in the settings named in `literal`. WrongSetting names a setting that is
    wrong. Without one of Java's names, other settings do not change.
    """
    found = resolve(given, literal)
    if not any(name.startswith(_OF_JAVA) for name in found):
        return found
    others = {name: value for name, value in found.items() if not name.startswith(_OF_SECURITY)}
    return others | librdkafka_settings(Security.of(given, literal))


def librdkafka_settings(security: Security) -> dict[str, Any]:
    """Return librdkafka's settings; BadSetting if a keystore or a truststore cannot be read."""
    settings: dict[str, Any] = {"security.protocol": security.protocol}
    sasl = security.sasl
    if sasl is not None:
        settings["sasl.mechanism"] = sasl.mechanism
        if sasl.tokens is not None:
            settings |= {"oauth_cb": sasl.tokens}
            settings |= {"sasl.oauthbearer.config": sasl.username} if sasl.username else {}
        elif sasl.is_token:
            raise TokenNeedsExtension
        else:
            settings |= {"sasl.username": sasl.username, "sasl.password": sasl.password}
    if security.tls is not None:
        try:
            settings |= _tls(security.tls)
        except InvalidTlsSetting as error:
            raise BadSetting(str(error)) from error
    return settings


def _tls(tls: Tls) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "ssl.endpoint.identification.algorithm": "https" if tls.checks_host else "none",
        "enable.ssl.certificate.verification": tls.checks_certificate,
    }
    if tls.suites.tls12:
        settings["ssl.cipher.suites"] = ":".join(tls.suites.tls12)
    if tls.revoked is not None:
        settings["ssl.crl.location"] = tls.revoked
    if tls.truststore is not None:
        if tls.truststore.source.is_directory:
            settings["ssl.ca.location"] = tls.truststore.source.value
        else:
            settings["ssl.ca.pem"] = tls.truststore.certificates()
    if tls.keystore is not None:
        identity = tls.keystore.identity()
        password = {} if identity.key_password is None else {"ssl.key.password": identity.key_password}
        settings |= {"ssl.certificate.pem": identity.chain, "ssl.key.pem": identity.key, **password}
    return settings
