"""Logs that are not in the page cache: the broker loads them in threads, and consumers get every record."""

import os

from wire.confluent import make_topic, read, send, sent_offsets
from wire.process import BrokerProcess
from wire.requests import fresh_name


def forget_pages(broker: BrokerProcess, topic: str) -> None:
    for path in (broker.log_dir / f"{topic}-0").iterdir():
        descriptor = os.open(path, os.O_RDWR)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def test_a_consumer_reads_a_log_that_is_on_disk_only(broker: BrokerProcess) -> None:
    make_topic(broker.bootstrap, topic := fresh_name("cold"), partitions=1)
    values = [f"{number} ".encode() * 500 for number in range(3_000)]
    sent_offsets(send(broker.bootstrap, topic, [{"value": value} for value in values]))

    forget_pages(broker, topic)
    found = read(broker.bootstrap, topic)

    assert [message.value() for message in found] == values
