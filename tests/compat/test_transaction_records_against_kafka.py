"""Records of `__transaction_state`: we read what Kafka writes, in every state that a transaction has."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from compat.kafka_tools.java import KafkaJava
from compat.kafka_tools.server import KafkaServer, client_settings
from headrace.coordinators.transaction.coordinator import TransactionCoordinator, TransactionLimits
from headrace.coordinators.transaction.records import TransactionRecord, decode_record, encode_record
from headrace.coordinators.transaction.state import TransactionState
from headrace.protocol.ids import TopicPartition
from headrace.protocol.records import decode_batch
from support.records import headers_of, split_batches

TIMEOUT_S = 60


@pytest.fixture(scope="module")
def written(kafka_java: KafkaJava, tmp_path_factory: pytest.TempPathFactory) -> list[TransactionRecord]:
    """What Kafka has in its log after a commit, an abort, and a transaction that is still open."""
    with KafkaServer(kafka_java, tmp_path_factory.mktemp("kafka")) as kafka:
        kafka.create_topic("orders", partitions=3)
        for name in ("committed", "aborted", "open"):
            producer: Any = Producer(client_settings(kafka.bootstrap) | {"transactional.id": name})
            producer.init_transactions(TIMEOUT_S)
            producer.begin_transaction()
            for partition in range(3):
                producer.produce("orders", b"x", partition=partition)
            producer.flush(TIMEOUT_S)
            if name == "committed":
                producer.commit_transaction(TIMEOUT_S)
            elif name == "aborted":
                producer.abort_transaction(TIMEOUT_S)
        directory = kafka.log_dir
    return [
        record for path in sorted(directory.glob("__transaction_state-*/*.log")) for record in _read(path)
    ]


def _read(path: Path) -> list[TransactionRecord]:
    found = []
    for batch in split_batches(path.read_bytes()):
        (header,) = headers_of(batch)
        for record in decode_batch(batch, header):
            decoded = decode_record(record.key, record.value)
            assert decoded is not None
            found.append(decoded)
    return found


def test_our_coordinator_continues_with_kafkas_log(written: list[TransactionRecord]) -> None:
    coordinator = TransactionCoordinator(TransactionLimits())
    for record in written:
        coordinator.apply(record)

    states = {name: transaction.state for name, transaction in coordinator.transactions.items()}
    assert states["committed"] is TransactionState.COMPLETE_COMMIT
    assert states["aborted"] is TransactionState.COMPLETE_ABORT
    assert coordinator.transactions["open"].partitions == {TopicPartition("orders", n) for n in range(3)}
    assert states["open"] in {TransactionState.ONGOING, TransactionState.COMPLETE_ABORT}


def test_we_write_the_same_values(written: list[TransactionRecord]) -> None:
    """Kafka may order topics and partitions differently: so both are decoded again."""
    assert len(written) > 9
    for record in written:
        assert decode_record(*encode_record(record)) == record
