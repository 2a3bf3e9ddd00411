"""The settings of authentication, TLS and ZooKeeper, with Kafka's names and defaults.

Most of those of listeners may be set for one listener, `listener.name.NAME.*`, and some for one of its
mechanisms, `listener.name.NAME.MECHANISM.*`.

Kafka reads the credential for ZooKeeper from the section `Client` of the JAAS file of its Java process.
`zookeeper.sasl.jaas.file`, `zookeeper.sasl.jaas.config` and `zookeeper.auth.scheme` replace that here.
"""

from typing import Final

from headrace.broker.settings import setting

_NETTY: Final = "org.apache.zookeeper.ClientCnxnSocketNetty"

AUTHORIZERS: Final = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
)
"""Kafka's authorizers, of Kafka without and with ZooKeeper: both stand for ours, which has the same rules."""

SECURITY_SETTINGS: Final = setting.documented(
    setting.text("authorizer.class.name", "", choices=("", *AUTHORIZERS)),
    "Whether ACLs decide who may do what. Empty: everybody may do everything. Kafka's two authorizers "
    "stand for the same rules; other classes are not supported.",
    setting.text("super.users", ""),
    "The principals that may do everything, separated by semicolons: User:admin;User:broker. The "
    "principal of the brokers should be one of them.",
    setting.password("delegation.token.secret.key"),
    "The key that makes delegation tokens; the same on every broker. Without it there are no tokens.",
    setting.long("delegation.token.max.lifetime.ms", 604_800_000, low=1),
    "How long a delegation token can be renewed.",
    setting.long("delegation.token.expiry.time.ms", 86_400_000, low=1),
    "How long a delegation token is valid if it is not renewed.",
    setting.long("delegation.token.expiry.check.interval.ms", 3_600_000, low=1),
    "How often expired delegation tokens are deleted.",
    setting.flag("allow.everyone.if.no.acl.found", False),
    "Whether everybody may use a resource that no ACL is about.",
    setting.text(
        "security.inter.broker.protocol",
        "PLAINTEXT",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    "The security protocol of connections between brokers, if inter.broker.listener.name is not set.",
    setting.items("sasl.enabled.mechanisms", ("GSSAPI",), scope=setting.PER_BROKER),
    "The mechanisms that clients may use: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER. Kafka's "
    "default, GSSAPI, is not supported: a listener with SASL has to name others.",
    setting.password("sasl.jaas.config", scope=setting.PER_BROKER),
    "The options of a login module: user_NAME=PASSWORD are the users for PLAIN; username and password are "
    "those of this broker for other brokers.",
    setting.text("sasl.mechanism.inter.broker.protocol", "GSSAPI", scope=setting.PER_BROKER),
    "The mechanism that this broker uses to authenticate to other brokers.",
    setting.integer("sasl.server.max.receive.size", 524_288, low=1),
    "The largest request of a client that has not authenticated yet.",
    setting.long("connections.max.reauth.ms", 0),
    "How long a client may send requests until it has to authenticate again; 0: without limit.",
    setting.integer("connection.failed.authentication.delay.ms", 100, low=0),
    "How late a failed authentication is answered.",
    setting.text("ssl.keystore.type", "JKS", scope=setting.PER_BROKER),
    "The type of the keystore: PKCS12 or PEM.",
    setting.text("ssl.keystore.location", scope=setting.PER_BROKER),
    "The file with the broker's certificate and key. It is loaded again when it changes.",
    setting.password("ssl.keystore.password", scope=setting.PER_BROKER),
    "The password of the keystore.",
    setting.password("ssl.key.password", scope=setting.PER_BROKER),
    "The password of the key, if it has one of its own.",
    setting.password("ssl.keystore.certificate.chain", scope=setting.PER_BROKER),
    "The broker's certificate and those of its issuers in PEM, instead of a file.",
    setting.password("ssl.keystore.key", scope=setting.PER_BROKER),
    "The broker's key in PEM, instead of a file.",
    setting.text("ssl.truststore.type", "JKS", scope=setting.PER_BROKER),
    "The type of the truststore: PKCS12 or PEM.",
    setting.text("ssl.truststore.location", scope=setting.PER_BROKER),
    "The file with the certificates of trusted issuers. It is loaded again when it changes.",
    setting.password("ssl.truststore.password", scope=setting.PER_BROKER),
    "The password of the truststore.",
    setting.password("ssl.truststore.certificates", scope=setting.PER_BROKER),
    "The certificates of the trusted issuers in PEM, instead of a file.",
    setting.text(
        "ssl.client.auth", "none", choices=("required", "requested", "none"), scope=setting.PER_BROKER
    ),
    "Whether clients have to show a certificate. On SASL_SSL listeners only "
    "listener.name.NAME.ssl.client.auth counts.",
    setting.items("ssl.enabled.protocols", ("TLSv1.2", "TLSv1.3"), scope=setting.PER_BROKER),
    "The versions of TLS that are accepted.",
    setting.text("ssl.protocol", "TLSv1.3", scope=setting.PER_BROKER),
    "The newest version of TLS for connections to other brokers.",
    setting.items("ssl.cipher.suites", (), scope=setting.PER_BROKER),
    "The cipher suites that are accepted, by Java's or OpenSSL's names; by default OpenSSL's choice.",
    setting.text("ssl.endpoint.identification.algorithm", "https", scope=setting.PER_BROKER),
    "Whether the host name of another broker must be in its certificate: https, or empty.",
    setting.flag("ssl.allow.dn.changes", False),
    "Whether a keystore that is set while the broker runs may have a certificate with another subject.",
    setting.flag("ssl.allow.san.changes", False),
    "Whether the certificate of such a keystore may lack subject alternative names of the one before.",
    setting.text("ssl.principal.mapping.rules", "DEFAULT"),
    "How the subject of a client's certificate becomes the name of its principal.",
    setting.text("sasl.oauthbearer.jwks.endpoint.url"),
    "The keys that sign the tokens of OAUTHBEARER, a JWKS document: https://... or file:///...",
    setting.long("sasl.oauthbearer.jwks.endpoint.refresh.ms", 3_600_000, low=1),
    "How often these keys are loaded again.",
    setting.items("sasl.oauthbearer.expected.audience", ()),
    "Tokens must be for one of these audiences; empty: for any.",
    setting.text("sasl.oauthbearer.expected.issuer"),
    "The issuer that tokens must name, if it is set.",
    setting.text("sasl.oauthbearer.scope"),
    "The scopes that a token must have, separated by spaces, if it is set.",
    setting.text("sasl.oauthbearer.scope.claim.name", "scope"),
    "The claim of a token with its scopes.",
    setting.text("sasl.oauthbearer.sub.claim.name", "sub"),
    "The claim of a token with the name of the user.",
    setting.integer("sasl.oauthbearer.clock.skew.seconds", 30),
    "By how much the clocks of the issuer and the broker may differ.",
)

ZOOKEEPER_SETTINGS: Final = setting.documented(
    setting.text("zookeeper.connect", "127.0.0.1:2181"),
    "The ZooKeeper ensemble: host:port,host:port/chroot.",
    setting.integer("zookeeper.session.timeout.ms", 18_000, low=1),
    "The ZooKeeper session timeout, after which a failed broker loses its registration.",
    setting.integer("zookeeper.connection.timeout.ms", 18_000, low=1),
    "How long a starting broker waits for a connection to ZooKeeper.",
    setting.flag("zookeeper.set.acl", False),
    "Whether only the broker's ZooKeeper user may change the znodes that it creates, and read those with "
    "secrets.",
    setting.text("zookeeper.sasl.jaas.file"),
    "A JAAS file with username and password for ZooKeeper in its section Client.",
    setting.password("zookeeper.sasl.jaas.config"),
    "The login module with username and password for ZooKeeper, instead of a file.",
    setting.text("zookeeper.auth.scheme", "sasl", choices=("sasl", "digest")),
    "How username and password are shown to ZooKeeper: with SASL DIGEST-MD5, or as digest, which sends "
    "the password and needs no users in ZooKeeper.",
    setting.flag("zookeeper.ssl.client.enable", False),
    "Whether the broker connects to ZooKeeper with TLS.",
    setting.text("zookeeper.clientCnxnSocket", choices=(_NETTY, "org.apache.zookeeper.ClientCnxnSocketNIO")),
    f"Kafka needs {_NETTY} for TLS. Headrace accepts it, and needs nothing.",
    setting.text("zookeeper.ssl.keystore.type"),
    "The type of the keystore: PKCS12 or PEM.",
    setting.text("zookeeper.ssl.keystore.location"),
    "The file with the certificate that the broker shows to ZooKeeper, if it asks for one.",
    setting.password("zookeeper.ssl.keystore.password"),
    "The password of the keystore.",
    setting.text("zookeeper.ssl.truststore.type"),
    "The type of the truststore: PKCS12 or PEM.",
    setting.text("zookeeper.ssl.truststore.location"),
    "The file with the certificates of those who sign ZooKeeper's certificates.",
    setting.password("zookeeper.ssl.truststore.password"),
    "The password of the truststore.",
    setting.text("zookeeper.ssl.protocol", "TLSv1.3"),
    "The newest version of TLS that is used. Kafka's default is TLSv1.2.",
    setting.items("zookeeper.ssl.enabled.protocols", ("TLSv1.2", "TLSv1.3")),
    "The versions of TLS that are accepted.",
    setting.items("zookeeper.ssl.cipher.suites", ()),
    "The cipher suites that are accepted, by Java's or OpenSSL's names; by default OpenSSL's choice.",
    setting.text("zookeeper.ssl.endpoint.identification.algorithm", "HTTPS"),
    "Whether ZooKeeper's host name must be in its certificate: HTTPS, or empty.",
)
"""The settings of a broker's connection to ZooKeeper; the names and defaults are those of Kafka 3.9."""
