"""One broker with topics of many kinds, which the tests only read, and its schema registry."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from spark.topics import FOREVER, SETTINGS, fill_topics
from support.process import UpProcess
from wire.confluent import make_topic, settings

TRANSACTIONS = "transactions"


@pytest.fixture(scope="session")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    with UpProcess(tmp_path_factory.mktemp("up"), SETTINGS) as process:
        fill_topics(process.bootstrap)
        _write_transactions(process.bootstrap)
        yield process
        assert process.running, process.log_tail()
        assert " ERROR " not in process.log.read_text(), process.log_tail()


@pytest.fixture(scope="session")
def bootstrap(up: UpProcess) -> str:
    return up.bootstrap


def _write_transactions(bootstrap: str) -> None:
    """Write transactions that are committed and aborted in turn, and records without one between them."""
    make_topic(bootstrap, TRANSACTIONS, partitions=2, retention_ms=FOREVER)
    plain = Producer(settings(bootstrap))
    writer = Producer(settings(bootstrap, transactional_id="writer", batch_num_messages=3))
    writer.init_transactions()
    for number in range(8):
        writer.begin_transaction()
        for record in range(7):
            writer.produce(TRANSACTIONS, b"%d-%d" % (number, record), partition=record % 2)
        writer.flush()
        plain.produce(TRANSACTIONS, b"plain-%d" % number, partition=number % 2)
        plain.flush()
        if number % 2:
            writer.abort_transaction()
        else:
            writer.commit_transaction()
