"""The settings of authentication and TLS, with Kafka's names and defaults.

Most of them may be set for one listener, `listener.name.NAME.*`, and some for one of its mechanisms,
`listener.name.NAME.MECHANISM.*`.
"""

from typing import Final

from headrace.broker.settings import Kind, Scope, Setting

SECURITY_SETTINGS: Final = [
    Setting(
        name="security.inter.broker.protocol",
        kind=Kind.STRING,
        default="PLAINTEXT",
        doc="The security protocol of connections between brokers, if inter.broker.listener.name is not set.",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    Setting(
        name="sasl.enabled.mechanisms",
        kind=Kind.LIST,
        default=("GSSAPI",),
        doc="The mechanisms that clients may use: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER. "
        "Kafka's default, GSSAPI, is not supported: a listener with SASL has to name others.",
        scope=Scope.PER_BROKER,
    ),
    Setting(
        name="sasl.jaas.config",
        kind=Kind.PASSWORD,
        default=None,
        doc="The options of a login module: user_NAME=PASSWORD are the users for PLAIN; "
        "username and password are those of this broker for other brokers.",
        scope=Scope.PER_BROKER,
    ),
    Setting(
        name="sasl.mechanism.inter.broker.protocol",
        kind=Kind.STRING,
        default="GSSAPI",
        doc="The mechanism that this broker uses to authenticate to other brokers.",
        scope=Scope.PER_BROKER,
    ),
    Setting(
        name="sasl.server.max.receive.size",
        kind=Kind.INT,
        default=524_288,
        doc="The largest request of a client that has not authenticated yet.",
        low=1,
    ),
    Setting(
        name="connections.max.reauth.ms",
        kind=Kind.LONG,
        default=0,
        doc="How long a client may send requests until it has to authenticate again; 0: without limit.",
    ),
    Setting(
        name="connection.failed.authentication.delay.ms",
        kind=Kind.INT,
        default=100,
        doc="How late a failed authentication is answered.",
        low=0,
    ),
    Setting(
        name="ssl.keystore.type",
        kind=Kind.STRING,
        default="JKS",
        doc="The type of the keystore: JKS, PKCS12 or PEM.",
        scope=Scope.PER_BROKER,
    ),
    Setting(
        name="ssl.keystore.location",
        kind=Kind.STRING,
        default=None,
        doc="The file with the broker's certificate and key. It is loaded again when it changes.",
        scope=Scope.PER_BROKER,
    ),
    Setting(
        name="ssl.keystore.password",
        kind=Kind.PASSWORD,
        default=None,
        doc="The password of the keystore.",
        scope=Scope.PER_BROKER,
    ),
    Setting(
        name="ssl.key.password",
        kind=Kind.PASSWORD,
        default=None,
        doc="The password of the key, if it has one of its own.",
        scope=Scope.PER_BROKER,
    ),
    Setting(
        name="ssl.keystore.certificate.chain",
        kind=Kind.PASSWORD,
        default=None,
        doc="The broker's certificate and those of its issuers in PEM, instead of a file.",
        scope=Scope.PER_BROKER,
    ),
    Setting(
        name="ssl.keystore.key",
        kind=Kind.PASSWORD,
        default=None,
        doc="The broker's key in PEM, instead of a file.",
        scope=Scope.PER_BROKER,
    ),
    Setting(
        name="ssl.truststore.type",
        kind=Kind.STRING,
        default="JKS",
        doc="The type of the truststore: JKS, PKCS12 or PEM.",
        scope=Scope.PER_BROKER,
    ),
    Setting(
        name="ssl.truststore.location",
        kind=Kind.STRING,
        default=None,
        doc="The file with the certificates of trusted issuers. It is loaded again when it changes.",
        scope=Scope.PER_BROKER,
    ),
    Setting(
        name="ssl.truststore.password",
        kind=Kind.PASSWORD,
        default=None,
        doc="The password of the truststore.",
        scope=Scope.PER_BROKER,
    ),
    Setting(
        name="ssl.truststore.certificates",
        kind=Kind.PASSWORD,
        default=None,
        doc="The certificates of the trusted issuers in PEM, instead of a file.",
        scope=Scope.PER_BROKER,
    ),
    Setting(
        name="ssl.client.auth",
        kind=Kind.STRING,
        default="none",
        doc="Whether clients have to show a certificate.",
        choices=("required", "requested", "none"),
        scope=Scope.PER_BROKER,
    ),
    Setting(
        name="ssl.enabled.protocols",
        kind=Kind.LIST,
        default=("TLSv1.2", "TLSv1.3"),
        doc="The versions of TLS that are accepted.",
        scope=Scope.PER_BROKER,
    ),
    Setting(
        name="ssl.protocol",
        kind=Kind.STRING,
        default="TLSv1.3",
        doc="The newest version of TLS for connections to other brokers.",
        scope=Scope.PER_BROKER,
    ),
    Setting(
        name="ssl.cipher.suites",
        kind=Kind.LIST,
        default=(),
        doc="The cipher suites that are accepted, by Java's or OpenSSL's names; by default OpenSSL's choice.",
        scope=Scope.PER_BROKER,
    ),
    Setting(
        name="ssl.endpoint.identification.algorithm",
        kind=Kind.STRING,
        default="https",
        doc="Whether the host name of another broker must be in its certificate: https, or empty.",
        scope=Scope.PER_BROKER,
    ),
    Setting(
        name="ssl.principal.mapping.rules",
        kind=Kind.STRING,
        default="DEFAULT",
        doc="How the subject of a client's certificate becomes the name of its principal.",
    ),
    Setting(
        name="sasl.oauthbearer.jwks.endpoint.url",
        kind=Kind.STRING,
        default=None,
        doc="The keys that sign the tokens of OAUTHBEARER, a JWKS document: https://... or file:///...",
    ),
    Setting(
        name="sasl.oauthbearer.jwks.endpoint.refresh.ms",
        kind=Kind.LONG,
        default=3_600_000,
        doc="How often these keys are loaded again.",
        low=1,
    ),
    Setting(
        name="sasl.oauthbearer.expected.audience",
        kind=Kind.LIST,
        default=(),
        doc="Tokens must be for one of these audiences; empty: for any.",
    ),
    Setting(
        name="sasl.oauthbearer.expected.issuer",
        kind=Kind.STRING,
        default=None,
        doc="The issuer that tokens must name, if it is set.",
    ),
    Setting(
        name="sasl.oauthbearer.scope",
        kind=Kind.STRING,
        default=None,
        doc="The scopes that a token must have, separated by spaces, if it is set.",
    ),
    Setting(
        name="sasl.oauthbearer.scope.claim.name",
        kind=Kind.STRING,
        default="scope",
        doc="The claim of a token with its scopes.",
    ),
    Setting(
        name="sasl.oauthbearer.sub.claim.name",
        kind=Kind.STRING,
        default="sub",
        doc="The claim of a token with the name of the user.",
    ),
    Setting(
        name="sasl.oauthbearer.clock.skew.seconds",
        kind=Kind.INT,
        default=30,
        doc="By how much the clocks of the issuer and the broker may differ.",
    ),
]
