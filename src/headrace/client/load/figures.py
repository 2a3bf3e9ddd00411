"""A load on a cluster: its tasks, and the figures of their results. Pure: `worker` runs the tasks."""

import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

COMPRESSIONS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
BUSY: Final = 0.85  # of a core: such a thread is never idle
EXHAUSTED: Final = 0.9  # of all cores
_PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}

Phase = Literal["produce", "consume", "latency"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The work of one worker process, which gets it as JSON through its standard input."""

    phase: Phase
    bootstrap: str
    topic: str
    partitions: tuple[int, ...]
    record_size: int
    seconds: float
    acks: str = "all"
    compression: str = "none"
    rate: int = 0  # records a second; 0: as many as possible
    security: Mapping[str, Any] = field(
        default_factory=dict, repr=False
    )  # librdkafka's settings, with secrets

    def encode(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> "Task":
        fields = json.loads(text)
        return cls(**fields | {"partitions": tuple(fields["partitions"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """The latency of records in milliseconds, by percentile."""

    p50: float
    p95: float
    p99: float
    p999: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """The CPU usage of processes in cores: of all together, and of the busiest thread."""

    cores: float
    busiest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """The figures of a phase. `brokers` is None if they are not on this machine."""

    phase: Phase
    compression: str
    records: int
    seconds: float
    records_per_s: float
    bytes_per_s: float
    clients: Used
    brokers: Used | None
    machine: float  # the share of all cores that was used
    limit: str
    """The bottleneck: client, broker, machine or unknown."""


def throughput(
    task: Task, records: int, seconds: float, *, clients: Used, brokers: Used | None, machine: float
) -> Throughput:
    """Return the figures of a phase."""
    rate = records / seconds if seconds else 0.0
    return Throughput(
        phase=task.phase,
        compression=task.compression,
        records=records,
        seconds=seconds,
        records_per_s=rate,
        bytes_per_s=rate * task.record_size,
        clients=clients,
        brokers=brokers,
        machine=machine,
        limit=limit(clients, brokers, machine),
    )


def limit(clients: Used, brokers: Used | None, machine: float) -> str:
    """Return the bottleneck: the side with a thread that is never idle, or the machine."""
    theirs = 0.0 if brokers is None else brokers.busiest
    if max(clients.busiest, theirs) >= BUSY:
        return "client" if clients.busiest >= theirs else "broker"
    return "machine" if machine >= EXHAUSTED else "unknown"


def latency(took_ms: Sequence[float]) -> Latency | None:
    """Return the percentiles; None without any records."""
    if not took_ms:
        return None
    ordered = sorted(took_ms)
    found = {name: ordered[_rank(share, len(ordered))] for name, share in _PERCENTILES.items()}
    return Latency(**found, max=ordered[-1])


def _rank(share: float, count: int) -> int:
    """Return the index of a percentile: of 10 values, the 5th for 0.5, the 10th for 0.99."""
    return max(0, math.ceil(share * count) - 1)


def values(size: int, number: int) -> Iterator[bytes]:
    """Yield different records of a size, about as compressible as usual ones: words and numbers."""
    source = random.Random(size)  # noqa: S311  the same records each time
    for index in range(number):
        text = f'{{"order": {index}, "customer": "{source.getrandbits(64):x}", "items": ['
        while len(text) < size:
            text += f'{{"sku": "{source.getrandbits(40):x}", "count": {source.randrange(10)}}}, '
        yield text[:size].encode()
