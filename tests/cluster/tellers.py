"""Tellers: threads that write every partition of a topic in one transaction, and note what they were told.

Whatever happens to the brokers: what a teller was told is committed is visible once in every partition, what
was not committed is visible nowhere, and what it does not know is visible everywhere or nowhere.
"""

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from confluent_kafka import KafkaException, Producer

from cluster.cluster import Cluster
from cluster.waiting import until
from headrace.protocol.schema.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headrace.protocol.schema.list_transactions import ListTransactionsRequest
from wire.confluent import read, settings
from wire.raw import RawClient

TARGET: Final = "transfers"
PARTITIONS: Final = 3
TELLERS: Final = 4
PROGRESS: Final = 5  # transactions of each teller
TIMEOUT_MS: Final = 5000  # of a transaction
_CALL_S: Final = 10.0  # for a client's call; a broker may be away meanwhile
_PAUSE_S: Final = 0.005  # between transactions, for the rest of the cluster
_UNFINISHED: Final = ListTransactionsRequest(
    state_filters=["Ongoing", "PrepareCommit", "PrepareAbort"], producer_id_filters=[]
)


@dataclass(slots=True)
class Transfer:
    """One transaction: its value, and whether it was committed as far as its teller knows."""

    value: bytes
    committed: bool | None = False


class Teller(threading.Thread):
    """One transactional id. When something fails, it goes on as a new instance, as after a restart."""

    def __init__(self, name: str, bootstrap: str) -> None:
        super().__init__(name=name, daemon=True)
        self.transfers: list[Transfer] = []
        self.finished = 0
        self._address = bootstrap
        self._is_told_to_stop = threading.Event()

    def stop(self) -> None:
        self._is_told_to_stop.set()

    def run(self) -> None:
        while not self._is_told_to_stop.is_set():
            producer = Producer(
                settings(self._address, transactional_id=self.name, transaction_timeout_ms=TIMEOUT_MS)
            )
            with contextlib.suppress(KafkaException):  # the next instance fences this one
                producer.init_transactions(_CALL_S)
                while not self._is_told_to_stop.wait(_PAUSE_S):
                    self._transfer(producer)
            producer.purge()

    def _transfer(self, producer: Producer) -> None:
        transfer = Transfer(b"%s-%d" % (self.name.encode(), len(self.transfers)))
        self.transfers.append(transfer)
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce(TARGET, transfer.value, partition=partition)
        if len(self.transfers) % 4:
            transfer.committed = None
            producer.commit_transaction(_CALL_S)
            transfer.committed = True
        else:
            producer.flush(_CALL_S)
            producer.abort_transaction(_CALL_S)
        self.finished += 1


class Tellers:
    """All tellers of a story, from their start to the check of what became of their transactions."""

    def __init__(self, cluster: Cluster, **configs: str) -> None:
        """`configs` are settings of the target, with underscores for dots."""
        self._cluster = cluster
        self._others: list[Transfer] = []
        cluster.create_topic(TARGET, PARTITIONS, None, **configs)
        self._all = [Teller(f"teller-{number}", cluster.bootstrap) for number in range(TELLERS)]
        for teller in self._all:
            teller.start()
        self.progress()

    def progress(self) -> None:
        """Return when every teller has ended more transactions."""
        wanted = [(teller, teller.finished + PROGRESS) for teller in self._all]
        until("transactions go on", lambda: all(teller.finished >= count for teller, count in wanted))

    def open(self, transactional_id: str) -> tuple[Producer, Transfer]:
        """Write in a transaction that the caller may end: what becomes of it is checked with all others."""
        producer = Producer(
            settings(
                self._cluster.bootstrap, transactional_id=transactional_id, transaction_timeout_ms=TIMEOUT_MS
            )
        )
        producer.init_transactions(_CALL_S)
        producer.begin_transaction()
        transfer = Transfer(transactional_id.encode())
        for partition in range(PARTITIONS):
            producer.produce(TARGET, transfer.value, partition=partition)
        assert producer.flush(_CALL_S) == 0
        self._others.append(transfer)
        return producer, transfer

    def stop(self) -> None:
        for teller in self._all:
            teller.stop()
        for teller in self._all:
            teller.join()

    def problems(self) -> list[str]:
        """Wait until no transaction is open, and compare what is visible with what the tellers know."""
        until("no transaction is open", lambda: is_quiet(self._cluster))
        bootstrap, partitions = self._cluster.bootstrap, range(PARTITIONS)
        messages = read(bootstrap, TARGET, partitions=partitions, isolation_level="read_committed")
        seen = Counter(message.value() for message in messages)
        known = {each.value: each for each in self._transfers()}
        found = [f"{value!r} is visible and nobody has committed it" for value in seen.keys() - known.keys()]
        for value, transfer in known.items():
            count = seen[value]
            legal = {True: {PARTITIONS}, False: {0}, None: {0, PARTITIONS}}[transfer.committed]
            if count not in legal:
                found.append(f"{transfer} is visible {count} times in {PARTITIONS} partitions")
        return found

    @property
    def committed(self) -> int:
        return sum(each.committed is True for each in self._transfers())

    def _transfers(self) -> Iterator[Transfer]:
        yield from self._others
        for teller in self._all:
            yield from teller.transfers


def is_quiet(cluster: Cluster) -> bool:
    """Return whether no coordinator knows an unfinished transaction, and no reader waits for one."""
    return unfinished(cluster) == {} and all(_is_stable(cluster, index) for index in range(PARTITIONS))


def unfinished(cluster: Cluster) -> dict[str, str] | None:
    """Return transactional ids and the states of their unfinished transactions; None if it is not known."""
    found: dict[str, str] = {}
    for broker in cluster.brokers.values():
        if broker.running:
            with RawClient(broker.bootstrap) as client:
                listed = client.ask(_UNFINISHED, 0)
            if listed.error_code:
                return None
            found |= {each.transactional_id: each.transaction_state for each in listed.transaction_states}
    return found


def _is_stable(cluster: Cluster, index: int) -> bool:
    """Return whether the last stable offset of a partition is its high watermark."""
    with RawClient(cluster.leader(TARGET, index).bootstrap) as client:
        stable, high = (_end_offset(client, index, isolation) for isolation in (1, 0))
    return stable == high >= 0


def _end_offset(client: RawClient, index: int, isolation: int) -> int:
    partition = ListOffsetsPartition(partition_index=index, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[ListOffsetsTopic(name=TARGET, partitions=[partition])],
    )
    answer = client.ask(request, 5).topics[0].partitions[0]
    return -1 if answer.error_code else int(answer.offset)
