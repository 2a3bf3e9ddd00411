"""Apache Kafka with an authorizer and a listener for users with passwords."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from compat.kafka_tools.java import KafkaJava
from compat.kafka_tools.server import KafkaServer
from ports import free_ports
from wire.guarded import TOKEN_SECRET, login_module

_SCRAM_LOGIN: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


class GuardedKafka(KafkaServer):
    """A running Apache Kafka with the users of `wire.guarded`, and others. `users_at` is their listener."""

    def __init__(self, java: KafkaJava, root: Path, users: Iterable[str], *, scram: bool = False) -> None:
        """With `scram`, the listener offers that as well, which delegation tokens need."""
        mechanisms = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] if scram else ["PLAIN"]
        super().__init__(
            java,
            root,
            {
                "listener.security.protocol.map": (
                    "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,USERS:SASL_PLAINTEXT"
                ),
                "listener.name.users.sasl.enabled.mechanisms": ",".join(mechanisms),
                "listener.name.users.plain.sasl.jaas.config": login_module(users),
                **{
                    f"listener.name.users.{each.lower()}.sasl.jaas.config": _SCRAM_LOGIN
                    for each in mechanisms[1:]
                },
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "delegation.token.secret.key": TOKEN_SECRET,
                "super.users": "User:ANONYMOUS;User:admin",  # the broker itself is anonymous
            },
        )
        self.users_at = ""

    def _configure(self) -> None:
        super()._configure()
        (port,) = free_ports(1)
        self.users_at = f"127.0.0.1:{port}"
        lines = self._properties.read_text().splitlines()
        more = f",USERS://{self.users_at}"
        self._properties.write_text(
            "".join(f"{line}{more if line.startswith('listeners=') else ''}\n" for line in lines)
        )
