"""What must hold of transactions in the simulated cluster.

Each transaction moves a value into some partitions, and may commit an offset of its worker's group. Whatever
happens to brokers and workers: the values of a transaction are visible to read_committed readers in all
partitions or in none, as its worker was told; no transaction stays open; nothing is visible that a reader was
told is aborted; every marker has the outcome that is committed in `__transaction_state`; and groups have the
offsets of committed transactions, and of no others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headrace.coordinators.decision import Producer
from headrace.coordinators.group.records import OffsetCommitKey, OffsetCommitValue
from headrace.coordinators.group.records import decode_record as decode_group_record
from headrace.coordinators.transaction.records import decode_record
from headrace.protocol.ids import TopicPartition
from simulation.log import Batch
from simulation.world import Violation

STATES = TopicPartition("__transaction_state", 0)
OFFSETS = TopicPartition("__consumer_offsets", 0)
TIMEOUT_MS = 3000  # of a transaction

Logs = Mapping[TopicPartition, Sequence[Batch]]


@dataclass(slots=True)
class Transfer:
    """One transaction, and what its worker knows of it."""

    values: dict[TopicPartition, int]  # the one of OFFSETS is an offset of the worker's group
    wants_commit: bool
    asked: bool = False  # EndTxn was sent, so that the outcome may be what was wanted
    outcome: bool | None = None  # as the worker was told
    producer: Producer = field(default=Producer(-1, -1))


class Bank:
    """All transactions of a story."""

    def __init__(self) -> None:
        self.transfers: list[Transfer] = []
        self.read: dict[TopicPartition, set[int]] = {}  # what read_committed readers got
        self.last_offsets: dict[str, int] = {}  # of groups, as their coordinator said last

    def check(self, logs: Logs) -> None:
        """Compare what is in the logs, when nothing happens any more, with what everybody was told."""
        visible = {id_: _visible(id_, batches) for id_, batches in logs.items() if id_ != STATES}
        for id_, values in self.read.items():
            for value in values - visible[id_]:
                raise Violation(f"{id_}: a read_committed reader got {value}, which is not committed")
        for transfer in self.transfers:
            _check_transfer(transfer, visible)
        _check_markers(logs)
        self._check_offsets(logs[OFFSETS], visible[OFFSETS])

    def _check_offsets(self, batches: Sequence[Batch], visible: set[int]) -> None:
        committed: dict[str, int] = {}  # workers of a group commit ever greater offsets, one after the other
        for group, offset in (each for batch in batches for each in _offsets(batch)):
            if offset in visible:
                committed[group] = max(offset, committed.get(group, -1))
        for group, offset in self.last_offsets.items():
            if offset != committed.get(group, -1):
                raise Violation(f"group {group} has offset {offset}, and committed {committed.get(group)}")


def _check_transfer(transfer: Transfer, visible: Mapping[TopicPartition, set[int]]) -> None:
    seen = {id_ for id_, value in transfer.values.items() if value in visible[id_]}
    if seen and len(seen) < len(transfer.values):
        raise Violation(f"{transfer} is torn: it is visible in {sorted(seen)} only")
    if transfer.outcome is True and not seen:
        raise Violation(f"{transfer} was acknowledged as committed, and is not visible")
    if seen and (transfer.outcome is False or not (transfer.asked and transfer.wants_commit)):
        raise Violation(f"{transfer} is visible, and was not committed")


def _check_markers(logs: Logs) -> None:
    """Every marker was decided: its outcome is committed in the log of the transaction coordinator."""
    decided: set[tuple[int, int, bool]] = set()
    for key, value in (each for batch in logs[STATES] for each in batch.records):
        record = decode_record(key, value)
        transaction = None if record is None else record.transaction
        if transaction is not None and transaction.state.is_prepared:
            decided.add((*transaction.producer, transaction.state.is_commit))
    for id_, batches in logs.items():
        for batch in batches:
            marker = batch.marker
            if marker and (batch.producer_id, batch.producer_epoch, marker.commit) not in decided:
                raise Violation(f"{id_}: {batch} has an outcome that no coordinator has committed")


def _visible(id_: TopicPartition, batches: Sequence[Batch]) -> set[int]:
    """What committed transactions have written to one partition."""
    open_: dict[int, list[int]] = {}
    found: set[int] = set()
    for batch in batches:
        if batch.marker is not None:
            ended = open_.pop(batch.producer_id, [])
            if batch.marker.commit:
                found.update(ended)
        elif batch.is_transactional:
            values = [offset for _, offset in _offsets(batch)] if id_ == OFFSETS else [batch.value]
            open_.setdefault(batch.producer_id, []).extend(values)
    if open_:
        raise Violation(f"{id_}: transactions of producers {sorted(open_)} have no marker")
    return found


def _offsets(batch: Batch) -> list[tuple[str, int]]:
    """The groups and offsets in a batch of a group coordinator."""
    if batch.marker is not None:
        return []
    found = (decode_group_record(key, value) for key, value in batch.records)
    return [
        (each.key.group, each.value.offset)
        for each in found
        if each is not None
        and isinstance(each.key, OffsetCommitKey)
        and isinstance(each.value, OffsetCommitValue)
    ]
