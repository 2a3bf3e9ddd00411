"""How clients connect to the brokers of a test, in the settings of each client library.

Producer(headrace.client.confluent_kafka)          confluent-kafka, and everything else on librdkafka
KafkaProducer(**headrace.client.kafka_python)
AIOKafkaProducer(**headrace.client.aiokafka)
Producer(headrace.client.connection)               Headrace's own SDK
headrace.client.properties                         a file for Java's clients: --command-config FILE
"""

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from headrace.client.properties import to_properties
from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.security.private_files import write_private
from headrace.security.sasl.exchange import SCRAM_SHA_512
from headrace.security.sasl.jaas import jaas_quoted

_PROTOCOL: Final = "SASL_SSL"
_LOGIN_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


@dataclass(frozen=True, slots=True)
class User:
    """A user of a secured cluster, and the CA that has signed the certificates of its brokers."""

    name: str
    password: str = field(repr=False)
    ca: Path


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The settings of a client; without a user, those of a cluster that everybody may enter."""

    bootstrap: str
    directory: Path = field(repr=False)
    user: User | None = None

    @property
    def confluent_kafka(self) -> dict[str, Any]:
        """The settings of librdkafka, by its names."""
        if self.user is None:
            return {"bootstrap.servers": self.bootstrap}
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": _PROTOCOL,
            "sasl.mechanism": SCRAM_SHA_512,
            "sasl.username": self.user.name,
            "sasl.password": self.user.password,
            "ssl.ca.location": str(self.user.ca),
        }

    @property
    def kafka_python(self) -> dict[str, Any]:
        """The keyword arguments of kafka-python's clients."""
        return self._keywords if self.user is None else self._keywords | {"ssl_cafile": str(self.user.ca)}

    @property
    def aiokafka(self) -> dict[str, Any]:
        """The keyword arguments of aiokafka's clients."""
        if self.user is None:
            return self._keywords
        return self._keywords | {"ssl_context": ssl.create_default_context(cafile=str(self.user.ca))}

    @property
    def java(self) -> dict[str, str]:
        """The settings of Java's clients, by their names."""
        if self.user is None:
            return {"bootstrap.servers": self.bootstrap}
        credentials = f"username={jaas_quoted(self.user.name)} password={jaas_quoted(self.user.password)}"
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": _PROTOCOL,
            "sasl.mechanism": SCRAM_SHA_512,
            "sasl.jaas.config": f"{_LOGIN_MODULE} required {credentials};",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.user.ca),
        }

    @property
    def properties(self) -> Path:
        """A file with the settings of Java's clients, which `--command-config` reads."""
        name = "client" if self.user is None else quote(self.user.name, safe="")
        path = self.directory / f"{name}.properties"
        write_private(path, to_properties(self.java))
        return path

    @property
    def spark(self) -> dict[str, str]:
        """The options of format("headrace"), and of Spark's own format("kafka")."""
        return {f"kafka.{name}": value for name, value in self.java.items()}

    @property
    def connection(self) -> ConnectionSettings:
        """The settings of Headrace's own clients."""
        return ConnectionSettings.of(self.java)

    @property
    def _keywords(self) -> dict[str, Any]:
        servers = {"bootstrap_servers": self.bootstrap.split(",")}
        if self.user is None:
            return servers
        return servers | {
            "security_protocol": _PROTOCOL,
            "sasl_mechanism": SCRAM_SHA_512,
            "sasl_plain_username": self.user.name,
            "sasl_plain_password": self.user.password,
        }
