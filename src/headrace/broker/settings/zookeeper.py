"""The settings of a broker's connection to ZooKeeper, with the names and defaults of Kafka 3.9.

Kafka reads the credential for SASL from the section `Client` of the JAAS file of its Java process. Here three
settings replace that: `zookeeper.sasl.jaas.file`, `zookeeper.sasl.jaas.config` and `zookeeper.auth.scheme`.
"""

from typing import Any, Final

from headrace.broker.settings.setting import Kind, Setting, Value

_NETTY: Final = "org.apache.zookeeper.ClientCnxnSocketNetty"


def _static(name: str, kind: Kind, default: Value | None, doc: str, **more: Any) -> Setting:
    return Setting(name=f"zookeeper.{name}", kind=kind, default=default, doc=doc, **more)


ZOOKEEPER_SETTINGS: Final = [
    _static("connect", Kind.STRING, "127.0.0.1:2181", "The ZooKeeper ensemble: host:port,host:port/chroot."),
    _static(
        "session.timeout.ms",
        Kind.INT,
        18_000,
        "The ZooKeeper session timeout, after which a failed broker loses its registration.",
        low=1,
    ),
    _static(
        "connection.timeout.ms",
        Kind.INT,
        18_000,
        "How long a starting broker waits for a connection to ZooKeeper.",
        low=1,
    ),
    _static(
        "set.acl",
        Kind.BOOLEAN,
        False,
        "Whether only the broker's ZooKeeper user may change the znodes that it creates, and read those with "
        "secrets.",
    ),
    _static(
        "sasl.jaas.file",
        Kind.STRING,
        None,
        "A JAAS file with username and password for ZooKeeper in its section Client.",
    ),
    _static(
        "sasl.jaas.config",
        Kind.PASSWORD,
        None,
        "The login module with username and password for ZooKeeper, instead of a file.",
    ),
    _static(
        "auth.scheme",
        Kind.STRING,
        "sasl",
        "How username and password are shown to ZooKeeper: with SASL DIGEST-MD5, or as digest, which sends "
        "the password and needs no users in ZooKeeper.",
        choices=("sasl", "digest"),
    ),
    _static("ssl.client.enable", Kind.BOOLEAN, False, "Whether the broker connects to ZooKeeper with TLS."),
    _static(
        "clientCnxnSocket",
        Kind.STRING,
        None,
        f"Kafka needs {_NETTY} for TLS. Headrace accepts it, and needs nothing.",
        choices=(_NETTY, "org.apache.zookeeper.ClientCnxnSocketNIO"),
    ),
    _static("ssl.keystore.type", Kind.STRING, None, "The type of the keystore: PKCS12 or PEM."),
    _static(
        "ssl.keystore.location",
        Kind.STRING,
        None,
        "The file with the certificate that the broker shows to ZooKeeper, if it asks for one.",
    ),
    _static("ssl.keystore.password", Kind.PASSWORD, None, "The password of the keystore."),
    _static("ssl.truststore.type", Kind.STRING, None, "The type of the truststore: PKCS12 or PEM."),
    _static(
        "ssl.truststore.location",
        Kind.STRING,
        None,
        "The file with the certificates of those who sign ZooKeeper's certificates.",
    ),
    _static("ssl.truststore.password", Kind.PASSWORD, None, "The password of the truststore."),
    _static(
        "ssl.protocol",
        Kind.STRING,
        "TLSv1.3",
        "The newest version of TLS that is used. Kafka's default is TLSv1.2.",
    ),
    _static(
        "ssl.enabled.protocols", Kind.LIST, ("TLSv1.2", "TLSv1.3"), "The versions of TLS that are accepted."
    ),
    _static(
        "ssl.cipher.suites",
        Kind.LIST,
        (),
        "The cipher suites that are accepted, by Java's or OpenSSL's names; by default OpenSSL's choice.",
    ),
    _static(
        "ssl.endpoint.identification.algorithm",
        Kind.STRING,
        "HTTPS",
        "Whether ZooKeeper's host name must be in its certificate: HTTPS, or empty.",
    ),
]
