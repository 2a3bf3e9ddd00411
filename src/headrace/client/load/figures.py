"""A load on a cluster: what it is made of, and what its figures come to. Pure: `worker` makes it."""

import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal

COMPRESSIONS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
BUSY: Final = 0.85  # of a core: a thread that is at it all the time
EXHAUSTED: Final = 0.9  # of all cores
_PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}

Phase = Literal["produce", "consume", "latency"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What one worker does; it gets there as JSON."""

    phase: Phase
    bootstrap: str
    topic: str
    partitions: tuple[int, ...]
    record_size: int
    seconds: float
    acks: str = "all"
    compression: str = "none"
    rate: int = 0  # records a second, where it is not as fast as it can

    def encode(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> "Task":
        fields = json.loads(text)
        return cls(**fields | {"partitions": tuple(fields["partitions"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long records took, in milliseconds: most of them, and the slowest."""

    p50: float
    p95: float
    p99: float
    p999: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """How busy processes were: all of them together, and the busiest thread, in cores."""

    cores: float
    busiest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """What a phase has come to. `brokers` is None if they are not on this machine."""

    phase: Phase
    compression: str
    records: int
    seconds: float
    records_per_s: float
    bytes_per_s: float
    clients: Used
    brokers: Used | None
    machine: float  # the share of all cores that anybody used
    limit: str
    """client, broker, machine, or unknown: what would have to be faster."""


def throughput(
    task: Task, records: int, seconds: float, *, clients: Used, brokers: Used | None, machine: float
) -> Throughput:
    """The figures of a phase."""
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
    """What would have to be faster for more records: whoever has a thread that never rests."""
    theirs = 0.0 if brokers is None else brokers.busiest
    if max(clients.busiest, theirs) >= BUSY:
        return "client" if clients.busiest >= theirs else "broker"
    return "machine" if machine >= EXHAUSTED else "unknown"


def latency(took_ms: Sequence[float]) -> Latency | None:
    """The percentiles; None of nothing."""
    if not took_ms:
        return None
    ordered = sorted(took_ms)
    found = {name: ordered[_rank(share, len(ordered))] for name, share in _PERCENTILES.items()}
    return Latency(**found, max=ordered[-1])


def _rank(share: float, count: int) -> int:
    """The first place that so large a share is not behind: of 10, the 5th for a half, the 10th for 0.99."""
    return max(0, math.ceil(share * count) - 1)


def values(size: int, number: int) -> Iterator[bytes]:
    """Different records of a size, each about as compressible as what people send: words and numbers."""
    source = random.Random(size)  # noqa: S311  the same each time
    for index in range(number):
        text = f'{{"order": {index}, "customer": "{source.getrandbits(64):x}", "items": ['
        while len(text) < size:
            text += f'{{"sku": "{source.getrandbits(40):x}", "count": {source.randrange(10)}}}, '
        yield text[:size].encode()
