"""The settings of authentication, TLS and ZooKeeper, with Kafka's names and defaults.

Most of those of listeners may be set for one listener, `listener.name.NAME.*`, and some for one of its
mechanisms, `listener.name.NAME.MECHANISM.*`.

Kafka reads the credential for ZooKeeper from the section `Client` of the JAAS file of its Java process.
`zookeeper.sasl.jaas.file`, `zookeeper.sasl.jaas.config` and `zookeeper.auth.scheme` replace that here.
"""

from typing import Final

from headrace.broker.settings.setting import (
    PER_BROKER,
    documented,
    flag,
    integer,
    items,
    long,
    password,
    text,
)

_NETTY: Final = "org.apache.zookeeper.ClientCnxnSocketNetty"

AUTHORIZERS: Final = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
)
"""Kafka's authorizers, of Kafka without and with ZooKeeper: both stand for ours, which has the same rules."""

SECURITY_SETTINGS: Final = documented(
    text("authorizer.class.name", "", choices=("", *AUTHORIZERS)),
    "Whether ACLs decide who may do what. Empty: everybody may do everything. Kafka's two authorizers "
    "stand for the same rules; other classes are not supported.",
    text("super.users", ""),
    "The principals that may do everything, separated by semicolons: User:admin;User:broker. The "
    "principal of the brokers should be one of them.",
    password("delegation.token.secret.key"),
    "The key that makes delegation tokens; the same on every broker. Without it there are no tokens.",
    long("delegation.token.max.lifetime.ms", 604_800_000, low=1),
    "How long a delegation token can be renewed.",
    long("delegation.token.expiry.time.ms", 86_400_000, low=1),
    "How long a delegation token is valid if it is not renewed.",
    long("delegation.token.expiry.check.interval.ms", 3_600_000, low=1),
    "How often expired delegation tokens are deleted.",
    flag("allow.everyone.if.no.acl.found", False),
    "Whether everybody may use a resource that no ACL is about.",
    text(
        "security.inter.broker.protocol",
        "PLAINTEXT",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    "The security protocol of connections between brokers, if inter.broker.listener.name is not set.",
    items("sasl.enabled.mechanisms", ("GSSAPI",), scope=PER_BROKER),
    "The mechanisms that clients may use: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER. Kafka's "
    "default, GSSAPI, is not supported: a listener with SASL has to name others.",
    password("sasl.jaas.config", scope=PER_BROKER),
    "The options of a login module: user_NAME=PASSWORD are the users for PLAIN; username and password are "
    "those of this broker for other brokers.",
    text("sasl.mechanism.inter.broker.protocol", "GSSAPI", scope=PER_BROKER),
    "The mechanism that this broker uses to authenticate to other brokers.",
    integer("sasl.server.max.receive.size", 524_288, low=1),
    "The largest request of a client that has not authenticated yet.",
    long("connections.max.reauth.ms", 0),
    "How long a client may send requests until it has to authenticate again; 0: without limit.",
    integer("connection.failed.authentication.delay.ms", 100, low=0),
    "How late a failed authentication is answered.",
    text("ssl.keystore.type", "JKS", scope=PER_BROKER),
    "The type of the keystore: PKCS12 or PEM.",
    text("ssl.keystore.location", scope=PER_BROKER),
    "The file with the broker's certificate and key. It is loaded again when it changes.",
    password("ssl.keystore.password", scope=PER_BROKER),
    "The password of the keystore.",
    password("ssl.key.password", scope=PER_BROKER),
    "The password of the key, if it has one of its own.",
    password("ssl.keystore.certificate.chain", scope=PER_BROKER),
    "The broker's certificate and those of its issuers in PEM, instead of a file.",
    password("ssl.keystore.key", scope=PER_BROKER),
    "The broker's key in PEM, instead of a file.",
    text("ssl.truststore.type", "JKS", scope=PER_BROKER),
    "The type of the truststore: PKCS12 or PEM.",
    text("ssl.truststore.location", scope=PER_BROKER),
    "The file with the certificates of trusted issuers. It is loaded again when it changes.",
    password("ssl.truststore.password", scope=PER_BROKER),
    "The password of the truststore.",
    password("ssl.truststore.certificates", scope=PER_BROKER),
    "The certificates of the trusted issuers in PEM, instead of a file.",
    text("ssl.client.auth", "none", choices=("required", "requested", "none"), scope=PER_BROKER),
    "Whether clients have to show a certificate. On SASL_SSL listeners only "
    "listener.name.NAME.ssl.client.auth counts.",
    items("ssl.enabled.protocols", ("TLSv1.2", "TLSv1.3"), scope=PER_BROKER),
    "The versions of TLS that are accepted.",
    text("ssl.protocol", "TLSv1.3", scope=PER_BROKER),
    "The newest version of TLS for connections to other brokers.",
    items("ssl.cipher.suites", (), scope=PER_BROKER),
    "The cipher suites that are accepted, by Java's or OpenSSL's names; by default OpenSSL's choice.",
    text("ssl.endpoint.identification.algorithm", "https", scope=PER_BROKER),
    "Whether the host name of another broker must be in its certificate: https, or empty.",
    flag("ssl.allow.dn.changes", False),
    "Whether a keystore that is set while the broker runs may have a certificate with another subject.",
    flag("ssl.allow.san.changes", False),
    "Whether the certificate of such a keystore may lack subject alternative names of the one before.",
    text("ssl.principal.mapping.rules", "DEFAULT"),
    "How the subject of a client's certificate becomes the name of its principal.",
    text("sasl.oauthbearer.jwks.endpoint.url"),
    "The keys that sign the tokens of OAUTHBEARER, a JWKS document: https://... or file:///...",
    long("sasl.oauthbearer.jwks.endpoint.refresh.ms", 3_600_000, low=1),
    "How often these keys are loaded again.",
    items("sasl.oauthbearer.expected.audience", ()),
    "Tokens must be for one of these audiences; empty: for any.",
    text("sasl.oauthbearer.expected.issuer"),
    "The issuer that tokens must name, if it is set.",
    text("sasl.oauthbearer.scope"),
    "The scopes that a token must have, separated by spaces, if it is set.",
    text("sasl.oauthbearer.scope.claim.name", "scope"),
    "The claim of a token with its scopes.",
    text("sasl.oauthbearer.sub.claim.name", "sub"),
    "The claim of a token with the name of the user.",
    integer("sasl.oauthbearer.clock.skew.seconds", 30),
    "By how much the clocks of the issuer and the broker may differ.",
)

ZOOKEEPER_SETTINGS: Final = documented(
    text("zookeeper.connect", "127.0.0.1:2181"),
    "The ZooKeeper ensemble: host:port,host:port/chroot.",
    integer("zookeeper.session.timeout.ms", 18_000, low=1),
    "The ZooKeeper session timeout, after which a failed broker loses its registration.",
    integer("zookeeper.connection.timeout.ms", 18_000, low=1),
    "How long a starting broker waits for a connection to ZooKeeper.",
    flag("zookeeper.set.acl", False),
    "Whether only the broker's ZooKeeper user may change the znodes that it creates, and read those with "
    "secrets.",
    text("zookeeper.sasl.jaas.file"),
    "A JAAS file with username and password for ZooKeeper in its section Client.",
    password("zookeeper.sasl.jaas.config"),
    "The login module with username and password for ZooKeeper, instead of a file.",
    text("zookeeper.auth.scheme", "sasl", choices=("sasl", "digest")),
    "How username and password are shown to ZooKeeper: with SASL DIGEST-MD5, or as digest, which sends "
    "the password and needs no users in ZooKeeper.",
    flag("zookeeper.ssl.client.enable", False),
    "Whether the broker connects to ZooKeeper with TLS.",
    text("zookeeper.clientCnxnSocket", choices=(_NETTY, "org.apache.zookeeper.ClientCnxnSocketNIO")),
    f"Kafka needs {_NETTY} for TLS. Headrace accepts it, and needs nothing.",
    text("zookeeper.ssl.keystore.type"),
    "The type of the keystore: PKCS12 or PEM.",
    text("zookeeper.ssl.keystore.location"),
    "The file with the certificate that the broker shows to ZooKeeper, if it asks for one.",
    password("zookeeper.ssl.keystore.password"),
    "The password of the keystore.",
    text("zookeeper.ssl.truststore.type"),
    "The type of the truststore: PKCS12 or PEM.",
    text("zookeeper.ssl.truststore.location"),
    "The file with the certificates of those who sign ZooKeeper's certificates.",
    password("zookeeper.ssl.truststore.password"),
    "The password of the truststore.",
    text("zookeeper.ssl.protocol", "TLSv1.3"),
    "The newest version of TLS that is used. Kafka's default is TLSv1.2.",
    items("zookeeper.ssl.enabled.protocols", ("TLSv1.2", "TLSv1.3")),
    "The versions of TLS that are accepted.",
    items("zookeeper.ssl.cipher.suites", ()),
    "The cipher suites that are accepted, by Java's or OpenSSL's names; by default OpenSSL's choice.",
    text("zookeeper.ssl.endpoint.identification.algorithm", "HTTPS"),
    "Whether ZooKeeper's host name must be in its certificate: HTTPS, or empty.",
)
"""The settings of a broker's connection to ZooKeeper; the names and defaults are those of Kafka 3.9."""
