"""How to connect to a cluster: its bootstrap servers, and the security of the connections.

    ConnectionSettings.load(Path("client.properties"))
    ConnectionSettings.of({"bootstrap.servers": "one:9092", "security.protocol": "SASL_SSL", ...})

The file is that of Kafka's --command-config: settings of the Java client or of librdkafka. `security` is for
our own connections, and `librdkafka()` for those of confluent-kafka.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from headrace.client.errors import BadSetting, Unreachable
from headrace.client.properties import InvalidProperties, parse_properties
from headrace.client.wire.connection import ANSWER_S, Address, Connection, NoAnswer
from headrace.client.wire.librdkafka import librdkafka_settings
from headrace.client.wire.security import PLAINTEXT, Security

BOOTSTRAP_SERVERS: Final = "bootstrap.servers"
_OF_REGISTRY: Final = ("schema.registry.", "basic.auth.", "config.providers")
QUICK_S: Final = 1.0  # for a broker whose answer only tells what it speaks


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """The bootstrap servers of a cluster and the security of connections to it; no secret is in its repr."""

    bootstrap: str
    security: Security = PLAINTEXT
    registry: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # settings of a schema registry

    @classmethod
    def of(cls, settings: Mapping[str, Any], default_bootstrap: str = "") -> "ConnectionSettings":
        """Read a client's settings, Java's or librdkafka's; WrongSetting names the one that is wrong.

        Settings that concern neither connections nor a schema registry are ignored.
        """
        bootstrap = str(settings.get(BOOTSTRAP_SERVERS) or settings.get("metadata.broker.list") or "").strip()
        return cls(bootstrap or default_bootstrap, Security.of(settings), registry_settings(settings))

    @classmethod
    def load(cls, path: Path | str, default_bootstrap: str = "") -> "ConnectionSettings":
        """Read a client's properties file; BadSetting names the file and the setting that is wrong."""
        settings = read_client_file(path)
        try:
            return cls.of(settings, default_bootstrap)
        except BadSetting as error:
            raise BadSetting(f"{path}: {error}") from error

    def at(self, bootstrap: str) -> "ConnectionSettings":
        """Return the same security for other bootstrap servers."""
        return replace(self, bootstrap=bootstrap)

    def librdkafka(self) -> dict[str, Any]:
        """Return the settings for a client of librdkafka; BadSetting if a store is unusable."""
        return {BOOTSTRAP_SERVERS: self.bootstrap, **librdkafka_settings(self.security)}

    def check(self) -> None:
        """Raise Unreachable if no broker listens, and Refused if one does not let us in.

        librdkafka would retry in both cases until its timeout. A broker without security that is slow to
        answer is left to librdkafka.
        """
        is_plain = self.security == PLAINTEXT
        answer_s = QUICK_S if is_plain else ANSWER_S
        why, listens = "expected HOST:PORT,...", False
        for address in addresses_of(self.bootstrap):
            try:
                Connection(address, answer_s=answer_s, security=self.security).close()
            except NoAnswer as error:
                listens |= is_plain and error.sent
                why = f"{error}; {error.doubt}" if error.doubt else str(error)
            else:
                return
        if not listens:
            raise Unreachable(f"no broker answers at {self.bootstrap}: {why}")


def registry_settings(settings: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return those of a client's settings that concern a schema registry, with references."""
    return tuple(
        (name, str(value)) for name, value in sorted(settings.items()) if name.startswith(_OF_REGISTRY)
    )


def read_client_file(path: Path | str) -> dict[str, str]:
    """Return the settings in a client's properties file, with references; BadSetting if it is none."""
    try:
        return parse_properties(Path(path).read_text("utf-8"), str(path))
    except OSError as error:
        raise BadSetting(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error
    except UnicodeDecodeError as error:
        raise BadSetting(f"{path} is not a properties file in UTF-8") from error
    except InvalidProperties as error:
        raise BadSetting(str(error)) from error


Target: TypeAlias = str | ConnectionSettings
"""A cluster to connect to: how, or only its bootstrap servers, which means PLAINTEXT."""


def settings_for(target: Target) -> ConnectionSettings:
    """Return how to connect to the cluster."""
    return ConnectionSettings(target) if isinstance(target, str) else target


def addresses_of(bootstrap: str) -> Iterator[Address]:
    """Yield the valid addresses of `HOST:PORT,...`."""
    for text in bootstrap.split(","):
        host, colon, port = text.strip().rpartition(":")
        if colon and host and port.isdigit() and int(port) < 65536:
            yield Address(host.strip("[]"), int(port))
