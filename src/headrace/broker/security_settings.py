"""The settings of authentication, with Kafka's names and defaults.

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
        doc="The mechanisms that clients may use: PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512. "
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
]
