"""What `headrace up` was asked for, and the settings of each broker that follow from it."""

import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from headrace.broker.config import BrokerConfig
from headrace.cli.machine.directory import DataDirectory
from headrace.cli.machine.door import listening
from headrace.cli.process import Refused

EMBEDDED: Final = "embedded"
ENSEMBLE: Final = "ensemble"

_DECIDED: Final = {
    "broker.id": "they are 1, 2, 3 and so on",
    "node.id": "they are 1, 2, 3 and so on",
    "log.dirs": "use --data",
    "log.dir": "use --data",
    "listeners": "use --host and --port",
    "zookeeper.connect": "use --zookeeper",
    "http.listener": "use --http-port",
}
_DECIDED_FOR_SEVERAL: Final = {
    "advertised.listeners": "brokers cannot share an address",
    "broker.rack": "use --racks",
}
_FOR_ONE_MACHINE: Final = {
    # Long enough for consumers that start together, short enough that nobody waits for a first message.
    "group.initial.rebalance.delay.ms": "100",
    "offsets.topic.num.partitions": "10",  # each of them is a directory and takes its time at every start
}
"""What a cluster on one machine is better off with than with Kafka's defaults; a setting still wins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A cluster on one machine; `given` are the settings that somebody has given to all its brokers."""

    directory: DataDirectory
    brokers: int
    host: str
    port: int
    http: bool
    http_port: int | None  # None: the usual one, or any
    zookeeper: str  # EMBEDDED, ENSEMBLE, or where it is
    racks: Sequence[str]
    given: Mapping[str, str]

    @property
    def is_one_process(self) -> bool:
        return self.brokers == 1 and self.zookeeper != ENSEMBLE

    @property
    def http_hosts(self) -> tuple[str, ...]:
        """Names that the gateway may be asked by."""
        return BrokerConfig.of(self.broker(1, self.port, "")).items("http.hosts")

    @contextmanager
    def http_socket(self, brokers: Collection[int]) -> Iterator[socket.socket | None]:
        """The gateway's, for as long as the block runs; None if there is to be none.

        `brokers` are the ports of the brokers, which it leaves to them.
        """
        if not self.http:
            yield None
            return
        if self.http_port in brokers:
            raise Refused(f"cannot serve HTTP on port {self.http_port}: a broker has it; choose another port")
        with listening(self.host, self.http_port, brokers) as held:
            yield held

    def check(self) -> None:
        """Refused, or InvalidSetting, for the first setting that cannot be."""
        decided = _DECIDED if self.brokers == 1 else _DECIDED | _DECIDED_FOR_SEVERAL
        for name, instead in decided.items():
            if name in self.given:
                raise Refused(f"{name} is not for `headrace up` to be told: {instead}")
        BrokerConfig.of(self.broker(1, self.port, ""))

    def broker(self, broker_id: int, port: int, zookeeper: str) -> dict[str, str]:
        """The settings of one broker."""
        bound = f"[{self.host}]" if ":" in self.host else self.host
        rack = {"broker.rack": self.racks[broker_id - 1]} if self.racks else {}
        return {
            **_FOR_ONE_MACHINE,
            **(_for_several(self.brokers) if self.brokers > 1 else {}),
            **self.given,
            **rack,
            "broker.id": str(broker_id),
            "log.dirs": str(self.directory.broker(broker_id)),
            "listeners": f"PLAINTEXT://{bound}:{port}",
            "zookeeper.connect": zookeeper,
        }


def _for_several(brokers: int) -> dict[str, str]:
    """One of them may die, and nothing is missing. How many have to be in sync is left as it is.

    __consumer_offsets is not named: it gets up to three replicas, as brokers come, if nobody says.
    """
    return {
        "default.replication.factor": str(min(3, brokers)),
        "transaction.state.log.replication.factor": str(min(3, brokers)),
        "transaction.state.log.min.isr": str(min(2, brokers)),
        "zookeeper.session.timeout.ms": "6000",  # nothing gets lost between processes of one machine
    }
