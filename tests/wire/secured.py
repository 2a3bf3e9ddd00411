"""Brokers with listeners that require authentication, and the users who may enter."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from support.process import ServerProcess

LOGIN: Final = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="broker" password="inside" '
    'user_broker="inside" user_alice="wonderland";'
)
ALICE: Final = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "alice",
    "sasl.password": "wonderland",
}


@dataclass(frozen=True, slots=True)
class SecuredCluster:
    """Brokers of one coordinator; `settings_of_brokers` are those of each."""

    root: Path
    settings_of_brokers: Mapping[str, str]
    running: ExitStack
    brokers: list[ServerProcess] = field(default_factory=list)

    def add_broker(self, more: Mapping[str, str] | None = None) -> ServerProcess:
        """Start another broker, with settings of its own."""
        made = self.new_broker(more or {})
        self.brokers.append(self.running.enter_context(made))
        return made

    def new_broker(self, more: Mapping[str, str]) -> ServerProcess:
        """The next broker, which does not run yet."""
        broker_id = len(self.brokers) + 1
        return ServerProcess(
            [
                "broker",
                f"--set=broker.id={broker_id}",
                f"--set=log.dirs={self.root / f'broker-{broker_id}'}",
                *(f"--set={name}={value}" for name, value in {**self.settings_of_brokers, **more}.items()),
            ],
            self.root / f"broker-{broker_id}.log",
        )

    @property
    def bootstrap(self) -> str:
        """The listener CLIENTS of every broker."""
        return ",".join(each.address.split(",")[1] for each in self.brokers)

    def settings(self, user: Mapping[str, Any] = ALICE, **more: Any) -> dict[str, Any]:
        """The settings of librdkafka; underscores stand for dots."""
        dotted = {name.replace("_", "."): value for name, value in more.items()}
        quiet = {"log_level": 0, "reconnect.backoff.max.ms": 100}
        return {"bootstrap.servers": self.bootstrap, **quiet, **user, **dotted}


def sasl_cluster(root: Path, brokers: int = 2, **more: str) -> AbstractContextManager[SecuredCluster]:
    """Brokers that authenticate to each other with PLAIN, and whose clients may also use SCRAM."""
    dotted = {name.replace("_", "."): value for name, value in more.items()}
    settings = {
        "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "sasl.jaas.config": LOGIN,
    }
    return secured_cluster(root, settings | dotted, brokers)


@contextmanager
def secured_cluster(root: Path, more: Mapping[str, str], brokers: int = 2) -> Iterator[SecuredCluster]:
    """Brokers with the listeners INSIDE, for each other, and CLIENTS."""
    with ExitStack() as running:
        data = root / "coordinator"
        coordinator = ServerProcess(
            ["coordinator", f"--data={data}", "--port=0", "--no-sync"], root / "coordinator.log"
        )
        running.enter_context(coordinator)
        settings = {
            "zookeeper.connect": coordinator.address,
            "listeners": "INSIDE://127.0.0.1:0,CLIENTS://127.0.0.1:0",
            "inter.broker.listener.name": "INSIDE",
            "offsets.topic.replication.factor": str(brokers),
            "transaction.state.log.replication.factor": str(brokers),
            "default.replication.factor": str(brokers),
            **more,
        }
        cluster = SecuredCluster(root, settings, running)
        for _ in range(brokers):
            cluster.add_broker()
        yield cluster
