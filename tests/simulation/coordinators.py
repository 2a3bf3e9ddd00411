"""Coordinators on simulated logs: their records and markers travel as they are, not as bytes."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from headrace.coordinators.decision import Producer
from headrace.protocol.control_records import ControlRecordType, encode_control_key
from headrace.protocol.records import Record
from headrace.storage.producers.state import EndMarker
from simulation.log import Batch

_values = count(1_000_000_000)  # every batch is a value of its own, and no client writes these


def new_values() -> None:
    """Begin again: a seed tells the same story every time."""
    global _values  # noqa: PLW0603  brokers encode batches without knowing of a world
    _values = count(1_000_000_000)


def _encode_batch(
    records: list[Record], *, producer_id: int = -1, producer_epoch: int = -1, transactional: bool = False
) -> tuple[Batch]:
    pairs = tuple((each.key, each.value) for each in records)
    batch = Batch(next(_values), producer_id, producer_epoch, -1, is_transactional=transactional)
    return (batch._replace(records=pairs),)


def _encode_marker(
    producer_id: int, producer_epoch: int, *, commit: bool, coordinator_epoch: int, timestamp: int
) -> tuple[Batch]:
    del timestamp
    kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
    return (
        Batch(
            next(_values),
            producer_id,
            producer_epoch,
            -1,
            is_transactional=True,
            marker=EndMarker(commit, coordinator_epoch),
            records=((encode_control_key(kind), None),),
        ),
    )


def _transactional_producer(records: Any) -> Producer | None:
    (batch,) = records
    return Producer(batch.producer_id, batch.producer_epoch) if batch.is_transactional else None


@contextmanager
def coordinators_in_memory(clock: SimpleNamespace) -> Iterator[None]:
    """Have coordinators and partitions encode and decode batches of the simulation."""
    new_values()
    shard, loading = "headrace.broker.coordinators.shard", "headrace.broker.coordinators.loading"
    with (
        patch(f"{shard}.time", clock),
        patch("headrace.broker.coordinators.producer_ids.time", clock),
        patch(f"{shard}.encode_batch", _encode_batch),
        patch(f"{loading}.batches", lambda data: ((batch, batch) for batch in data)),
        patch(f"{loading}.keys_and_values", lambda batch, _header: batch.records),
        patch("headrace.broker.replicas.partition.read_header", lambda data: data[0]),
        patch("headrace.broker.replicas.partition.encode_end_txn_batch", _encode_marker),
        patch("headrace.broker.records.appends._transactional_producer", _transactional_producer),
        patch("headrace.broker.records.appends.bytearray", tuple, create=True),
    ):
        yield
