"""The broker that is attacked: one listener without security, one with TLS, one with SASL, and no quotas."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from compare.secured import Certificates
from compare.wire import MIB, topic_id
from headrace.client.wire.connection import Address
from support.process import ServerProcess
from wire.secured import LOGIN

HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Target:
    """Where the broker listens. It can be sent to another process."""

    plain: Address
    tls: Address
    sasl: Address
    authority: Path
    topic: bytes  # the id of the attackers' topic


@dataclass(frozen=True, slots=True)
class Attacked:
    target: Target
    victims_topic: bytes
    process: ServerProcess


@contextmanager
def attacked(root: Path, core: int, settings: dict[str, str]) -> Iterator[Attacked]:
    """Run a broker on one core of the machine."""
    certificates = Certificates.made_in(root / "certificates")
    coordinator = ServerProcess(["coordinator", f"--data={root / 'coordinator'}", "--port=0"], root / "c.log")
    with coordinator:
        every = {
            "broker.id": "1",
            "log.dirs": str(root / "data"),
            "zookeeper.connect": coordinator.address,
            **certificates.broker_settings,
            "listeners": f"PLAINTEXT://{HOST}:0,SSL://{HOST}:0,SASL://{HOST}:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl.plain.sasl.jaas.config": LOGIN,
            "log.retention.bytes": str(1024 * MIB),  # the greedy producer does not fill the disk
            "log.segment.bytes": str(512 * MIB),
            "log.retention.check.interval.ms": "5000",
            **settings,
        }
        arguments = ["broker", *(f"--set={name}={value}" for name, value in every.items())]
        pinned = ["taskset", "--cpu-list", str(core)]
        with ServerProcess(arguments, root / "broker.log", inside=pinned) as broker:
            plain, tls, sasl = (_address(each) for each in broker.address.split(","))
            ids = [topic_id(plain, name) for name in ("attackers", "victims")]
            yield Attacked(Target(plain, tls, sasl, certificates.authority, ids[0]), ids[1], broker)


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return Address(host, int(port))
