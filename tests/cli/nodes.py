"""Nodes for tests: `headrace broker` with several brokers, on ports that stay reserved while it is down."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace.system.ports import reserved
from support.process import ClusterProcess


class NodeProcess(ClusterProcess):
    """`headrace broker` with headrace.brokers: its brokers are child processes, which a test may kill."""

    def __init__(self, root: Path, settings: dict[str, str], *arguments: str, **environment: str) -> None:
        super().__init__(root, environment=environment)
        self.file = root / "server.properties"
        self.settings = settings
        self.write()
        self.arguments = ["broker", f"--config={self.file}", *arguments]

    def write(self, **changed: str) -> None:
        """Write the file; `log_retention_ms` is `log.retention.ms`."""
        self.settings |= {name.replace("_", "."): value for name, value in changed.items()}
        self.file.write_text("".join(f"{name}={value}\n" for name, value in self.settings.items()))


@contextmanager
def node(root: Path, zookeeper: str, first_id: int, brokers: int, **settings: str) -> Iterator[NodeProcess]:
    """Yield a node with the brokers `first_id`, `first_id` + 1, …, which the test starts."""
    with reserved("127.0.0.1", 0, brokers) as ports:
        process = NodeProcess(
            root,
            {
                "broker.id": str(first_id),
                "headrace.brokers": str(brokers),
                "listeners": f"PLAINTEXT://127.0.0.1:{ports[0]}",
                "log.dirs": str(root / "logs"),
                "zookeeper.connect": zookeeper,
                "zookeeper.session.timeout.ms": "2000",
                "offsets.topic.num.partitions": "3",
                "group.initial.rebalance.delay.ms": "0",
                **{name.replace("_", "."): value for name, value in settings.items()},
            },
        )
        try:
            yield process
        finally:
            process.kill()
