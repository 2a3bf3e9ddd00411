"""What producers reach with three brokers: RF 3, acks=all, two in sync; all brokers' CPU together."""

import time
from collections.abc import Callable, Iterator
from itertools import count, product
from typing import Final

from compare.cluster import Cluster
from compare.producers import Load, ProducerLine, send
from compare.servers import Contender
from compare.table import Expected, Figures, Line

BATCHES: Final = (16384, 131072)
GRID: Final = tuple(product(BATCHES, (100, 1024), (1, 12)))
QUICK: Final = {(16384, 1024, 12), (16384, 100, 1)}
MEGABYTES: Final = {100: 60, 1024: 200}  # of one round, by record size
_names: Final = (f"cluster-{number}" for number in count())


def warm_up(cluster: Cluster, seconds: float) -> None:
    """Load before the first line: Kafka's JVMs compile what they see often."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for record_size in (100, 1024):
            load = Load(batch_size=16384, record_size=record_size, partitions=12, acks="all")
            topic = next(_names)
            cluster.create_topic(topic, partitions=load.partitions)
            send(cluster.bootstrap, topic, 30_000_000 // record_size, load)
            cluster.delete_topic(topic)


def lines(*, quick: bool) -> Iterator[Line[Cluster]]:
    share = 2 if quick else 1
    for batch_size, record_size, partitions in GRID:
        load = Load(batch_size=batch_size, record_size=record_size, partitions=partitions, acks="all")
        in_quick = (batch_size, record_size, partitions) in QUICK
        records = MEGABYTES[record_size] * 1_000_000 // record_size // share
        java = ProducerLine(load=load, records=records, topic=next(_names))
        yield _line("java", java, java.java, quick=in_quick, warm_up=False, rounds=2 if quick else 3)
        confluent = ProducerLine(load=load, records=records, topic=next(_names))
        yield _line("confluent", confluent, confluent.confluent, quick=in_quick, warm_up=True, rounds=None)


def _line(
    client: str,
    line: ProducerLine,
    run: Callable[[Contender], Figures],
    *,
    quick: bool,
    warm_up: bool,
    rounds: int | None,
) -> Line[Cluster]:
    return Line(
        name=f"cluster {client} {line.load}",
        prepare=line.prepare,
        run=run,
        finish=line.finish,
        quick=quick,
        warm_up=warm_up,
        rounds=rounds,
        expected=[
            Expected(figure="MB/s", at_least=1.0, beside="records/s"),
            Expected(figure="CPU s/GB", at_most=0.8),
        ],
    )
