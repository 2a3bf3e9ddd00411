"""Apache Kafka with TLS and SASL: beside its plain listener one for each way to secure a connection."""

from pathlib import Path
from typing import Final

from confluent_kafka.admin import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from compat.kafka_tools.java import KafkaJava
from compat.kafka_tools.server import KafkaServer
from compat.kafka_tools.written import SETTINGS
from ports import free_ports
from support.certificates import Authority, Identity

USER: Final = "ann=a,b"  # SCRAM has words of its own for both signs
PASSWORD: Final = r'so "very" se\cret;'
KEY_PASSWORD: Final = "opens the key"
STORE_PASSWORD: Final = "opens the store"
LISTENERS: Final = {
    "TLS": "SSL",
    "MUTUAL": "SSL",  # wants a certificate from clients, too
    "ELSEWHERE": "SSL",  # has the certificate of another host
    "USERS": "SASL_PLAINTEXT",
    "BOTH": "SASL_SSL",
    "BRIEF": "SASL_PLAINTEXT",  # wants to be told again and again who is there
}
_PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def _quoted(text: str) -> str:
    """As JAAS wants it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _jaas(module: str) -> str:
    return f"{module} username={_quoted(USER)} password={_quoted(PASSWORD)};"


class Files:
    """What a broker and its clients have on disk, certificates and keys in PEM, and words for settings."""

    def __init__(self, root: Path) -> None:
        self._root = root
        authority, stranger = Authority("the test's authority"), Authority("somebody else")
        server = authority.certify("broker", ["127.0.0.1", "localhost"])
        elsewhere = authority.certify("elsewhere", ["elsewhere.example"])
        client, other = authority.certify("client"), stranger.certify("stranger")
        self._write(f"trusted/{authority.file_name}", authority.certificate)
        self.server = self._write("server.pem", server.key + server.certificate)
        self.elsewhere = self._write("elsewhere.pem", elsewhere.key + elsewhere.certificate)
        trusted = pkcs12.PKCS12Certificate(authority.identity.signed, b"authority")
        encryption = BestAvailableEncryption(STORE_PASSWORD.encode())
        self.truststore = self._write_bytes("ca.p12", pkcs12.serialize_java_truststore([trusted], encryption))
        self.words: Final = {
            "ca_pkcs12": self.truststore,
            "pkcs12": self._write_bytes("client.p12", _pkcs12(client)),
            "store_password": STORE_PASSWORD,
            "ca": self._write("ca.pem", authority.certificate),
            "ca_text": authority.certificate,
            "ca_directory": str(root / "trusted"),
            "other_ca": self._write("other-ca.pem", stranger.certificate),
            "certificate": self._write("client.crt", client.certificate),
            "certificate_text": client.certificate,
            "key": self._write("client.key", client.encrypted_key(KEY_PASSWORD)),
            "key_text": client.key,
            "key_password": KEY_PASSWORD,
            "both": self._write("client.pem", client.key + client.certificate),
            "stranger": self._write("stranger.pem", other.key + other.certificate),
            "empty": self._write("empty.pem", ""),
            "missing": str(root / "missing.pem"),
            "user": USER,
            "password": PASSWORD,
            "plain": _jaas(_PLAIN_MODULE),
            "scram": _jaas(_SCRAM_MODULE),
        }

    def settings(self, text: str) -> dict[str, str]:
        """The settings in `text`, as in "ssl.truststore.type=PEM ssl.truststore.location=$ca"."""
        found = {}
        for setting in text.split():
            name, _, value = setting.partition("=")
            found[name] = self.words[value[1:]] if value.startswith("$") else value
        return found

    def _write(self, name: str, text: str) -> str:
        return self._write_bytes(name, text.encode())

    def _write_bytes(self, name: str, data: bytes) -> str:
        path = self._root / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        return str(path)


def _pkcs12(identity: Identity) -> bytes:
    encryption = BestAvailableEncryption(STORE_PASSWORD.encode())
    return pkcs12.serialize_key_and_certificates(b"a", identity.private, identity.signed, None, encryption)


class SecuredKafka(KafkaServer):
    """A running Apache Kafka with all of LISTENERS; `addresses` says where they are."""

    def __init__(self, java: KafkaJava, root: Path, files: Files) -> None:
        super().__init__(java, root, _settings(files))
        self.addresses: dict[str, str] = {}

    def add_user(self) -> None:
        """USER in SCRAM's words, which brokers keep; PLAIN's users stand in their settings."""
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            info = ScramCredentialInfo(mechanism, 4096)
            change = UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
            self.admin.alter_user_scram_credentials([change])[USER].result(timeout=30)

    def _configure(self) -> None:
        super()._configure()
        ports = free_ports(len(LISTENERS))
        self.addresses = {name: f"127.0.0.1:{port}" for name, port in zip(LISTENERS, ports, strict=True)}
        self.addresses["PLAINTEXT"] = self.bootstrap
        more = "".join(f",{name}://{self.addresses[name]}" for name in LISTENERS)
        lines = self._properties.read_text().splitlines()
        changed = [f"{line}{more}\n" if line.startswith("listeners=") else f"{line}\n" for line in lines]
        self._properties.write_text("".join(changed))


def _settings(files: Files) -> dict[str, str]:
    kinds = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"} | LISTENERS
    plain = f"{_PLAIN_MODULE} {_quoted(f'user_{USER}')}={_quoted(PASSWORD)};"
    settings = SETTINGS | {
        "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in kinds.items()),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": files.server,
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": files.truststore,
        "ssl.truststore.password": STORE_PASSWORD,
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.elsewhere.ssl.keystore.type": "PEM",
        "listener.name.elsewhere.ssl.keystore.location": files.elsewhere,
        "listener.name.users.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.brief.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.brief.plain.connections.max.reauth.ms": "300",
        "listener.name.both.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    }
    for listener in ("users", "both", "brief"):
        for mechanism, module in (
            ("plain", plain),
            ("scram-sha-256", f"{_SCRAM_MODULE};"),
            ("scram-sha-512", f"{_SCRAM_MODULE};"),
        ):
            name = f"listener.name.{listener}.{mechanism}.sasl.jaas.config"
            settings[name] = module.replace("\\", "\\\\")  # a file of properties has escapes of its own
    return settings
