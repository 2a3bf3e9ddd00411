"""The settings of authentication and TLS, with Kafka's names and defaults.

Most of them may be set for one listener, `listener.name.NAME.*`, and some for one of its mechanisms,
`listener.name.NAME.MECHANISM.*`.
"""

from functools import partial
from typing import Any, Final

from headrace.broker.settings.setting import Kind, Scope, Setting, Value


def _static(name: str, kind: Kind, default: Value | None, doc: str, **more: Any) -> Setting:
    return Setting(name=name, kind=kind, default=default, doc=doc, **more)


_dynamic = partial(_static, scope=Scope.PER_BROKER)

AUTHORIZERS: Final = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
)
"""Kafka's authorizers, of Kafka without and with ZooKeeper: both stand for ours, which has the same rules."""

SECURITY_SETTINGS: Final = [
    _static(
        "authorizer.class.name",
        Kind.STRING,
        "",
        "Whether ACLs decide who may do what. Empty: everybody may do everything. Kafka's two authorizers "
        "stand for the same rules; other classes are not supported.",
        choices=("", *AUTHORIZERS),
    ),
    _static(
        "super.users",
        Kind.STRING,
        "",
        "The principals that may do everything, separated by semicolons: User:admin;User:broker. The "
        "principal of the brokers should be one of them.",
    ),
    _static(
        "delegation.token.secret.key",
        Kind.PASSWORD,
        None,
        "The key that makes delegation tokens; the same on every broker. Without it there are no tokens.",
    ),
    _static(
        "delegation.token.max.lifetime.ms",
        Kind.LONG,
        604_800_000,
        "How long a delegation token can be renewed.",
        low=1,
    ),
    _static(
        "delegation.token.expiry.time.ms",
        Kind.LONG,
        86_400_000,
        "How long a delegation token is valid if it is not renewed.",
        low=1,
    ),
    _static(
        "delegation.token.expiry.check.interval.ms",
        Kind.LONG,
        3_600_000,
        "How often expired delegation tokens are deleted.",
        low=1,
    ),
    _static(
        "allow.everyone.if.no.acl.found",
        Kind.BOOLEAN,
        False,
        "Whether everybody may use a resource that no ACL is about.",
    ),
    _static(
        "security.inter.broker.protocol",
        Kind.STRING,
        "PLAINTEXT",
        "The security protocol of connections between brokers, if inter.broker.listener.name is not set.",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    _dynamic(
        "sasl.enabled.mechanisms",
        Kind.LIST,
        ("GSSAPI",),
        "The mechanisms that clients may use: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and "
        "OAUTHBEARER. Kafka's default, GSSAPI, is not supported: a listener with SASL has to name"
        " others.",
    ),
    _dynamic(
        "sasl.jaas.config",
        Kind.PASSWORD,
        None,
        "The options of a login module: user_NAME=PASSWORD are the users for PLAIN; username and "
        "password are those of this broker for other brokers.",
    ),
    _dynamic(
        "sasl.mechanism.inter.broker.protocol",
        Kind.STRING,
        "GSSAPI",
        "The mechanism that this broker uses to authenticate to other brokers.",
    ),
    _static(
        "sasl.server.max.receive.size",
        Kind.INT,
        524_288,
        "The largest request of a client that has not authenticated yet.",
        low=1,
    ),
    _static(
        "connections.max.reauth.ms",
        Kind.LONG,
        0,
        "How long a client may send requests until it has to authenticate again; 0: without limit.",
    ),
    _static(
        "connection.failed.authentication.delay.ms",
        Kind.INT,
        100,
        "How late a failed authentication is answered.",
        low=0,
    ),
    _dynamic("ssl.keystore.type", Kind.STRING, "JKS", "The type of the keystore: PKCS12 or PEM."),
    _dynamic(
        "ssl.keystore.location",
        Kind.STRING,
        None,
        "The file with the broker's certificate and key. It is loaded again when it changes.",
    ),
    _dynamic("ssl.keystore.password", Kind.PASSWORD, None, "The password of the keystore."),
    _dynamic("ssl.key.password", Kind.PASSWORD, None, "The password of the key, if it has one of its own."),
    _dynamic(
        "ssl.keystore.certificate.chain",
        Kind.PASSWORD,
        None,
        "The broker's certificate and those of its issuers in PEM, instead of a file.",
    ),
    _dynamic("ssl.keystore.key", Kind.PASSWORD, None, "The broker's key in PEM, instead of a file."),
    _dynamic("ssl.truststore.type", Kind.STRING, "JKS", "The type of the truststore: PKCS12 or PEM."),
    _dynamic(
        "ssl.truststore.location",
        Kind.STRING,
        None,
        "The file with the certificates of trusted issuers. It is loaded again when it changes.",
    ),
    _dynamic("ssl.truststore.password", Kind.PASSWORD, None, "The password of the truststore."),
    _dynamic(
        "ssl.truststore.certificates",
        Kind.PASSWORD,
        None,
        "The certificates of the trusted issuers in PEM, instead of a file.",
    ),
    _dynamic(
        "ssl.client.auth",
        Kind.STRING,
        "none",
        "Whether clients have to show a certificate. On SASL_SSL listeners only "
        "listener.name.NAME.ssl.client.auth counts.",
        choices=("required", "requested", "none"),
    ),
    _dynamic(
        "ssl.enabled.protocols", Kind.LIST, ("TLSv1.2", "TLSv1.3"), "The versions of TLS that are accepted."
    ),
    _dynamic(
        "ssl.protocol", Kind.STRING, "TLSv1.3", "The newest version of TLS for connections to other brokers."
    ),
    _dynamic(
        "ssl.cipher.suites",
        Kind.LIST,
        (),
        "The cipher suites that are accepted, by Java's or OpenSSL's names; by default OpenSSL's choice.",
    ),
    _dynamic(
        "ssl.endpoint.identification.algorithm",
        Kind.STRING,
        "https",
        "Whether the host name of another broker must be in its certificate: https, or empty.",
    ),
    _static(
        "ssl.allow.dn.changes",
        Kind.BOOLEAN,
        False,
        "Whether a keystore that is set while the broker runs may have a certificate with another subject.",
    ),
    _static(
        "ssl.allow.san.changes",
        Kind.BOOLEAN,
        False,
        "Whether the certificate of such a keystore may lack subject alternative names of the one before.",
    ),
    _static(
        "ssl.principal.mapping.rules",
        Kind.STRING,
        "DEFAULT",
        "How the subject of a client's certificate becomes the name of its principal.",
    ),
    _static(
        "sasl.oauthbearer.jwks.endpoint.url",
        Kind.STRING,
        None,
        "The keys that sign the tokens of OAUTHBEARER, a JWKS document: https://... or file:///...",
    ),
    _static(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        Kind.LONG,
        3_600_000,
        "How often these keys are loaded again.",
        low=1,
    ),
    _static(
        "sasl.oauthbearer.expected.audience",
        Kind.LIST,
        (),
        "Tokens must be for one of these audiences; empty: for any.",
    ),
    _static(
        "sasl.oauthbearer.expected.issuer",
        Kind.STRING,
        None,
        "The issuer that tokens must name, if it is set.",
    ),
    _static(
        "sasl.oauthbearer.scope",
        Kind.STRING,
        None,
        "The scopes that a token must have, separated by spaces, if it is set.",
    ),
    _static(
        "sasl.oauthbearer.scope.claim.name", Kind.STRING, "scope", "The claim of a token with its scopes."
    ),
    _static(
        "sasl.oauthbearer.sub.claim.name",
        Kind.STRING,
        "sub",
        "The claim of a token with the name of the user.",
    ),
    _static(
        "sasl.oauthbearer.clock.skew.seconds",
        Kind.INT,
        30,
        "By how much the clocks of the issuer and the broker may differ.",
    ),
]
