"""More connections, or more logs, than there are descriptors: nothing is the worse for it."""

import resource
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from headrace.protocol.schema.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from support.records import make_batch
from wire.process import BrokerProcess
from wire.raw import RawClient
from wire.requests import create_topic, fetch, produce, records_in

LIMIT: Final = 300
AT_A_TIME: Final = 200  # partitions of a request


@contextmanager
def soft_limit(count: int) -> Iterator[int]:
    """Give processes that are started meanwhile a low limit, which they may raise to the one returned."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    try:
        yield hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def hard_limit(count: int) -> list[str]:
    """Return a command that runs another one with a limit that it cannot raise."""
    code = f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, ({count}, {count})); "
    return [sys.executable, "-c", code + "os.execv(sys.argv[1], sys.argv[1:])"]


def test_a_broker_may_open_as_many_files_as_the_system_lets_it(tmp_path: Path) -> None:
    with soft_limit(LIMIT) as hard, BrokerProcess(tmp_path) as broker:
        assert resource.prlimit(broker.pid, resource.RLIMIT_NOFILE) == (hard, hard)


def test_connections_leave_the_logs_descriptors_to_write_with(own_broker: BrokerProcess) -> None:
    resource.prlimit(own_broker.pid, resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
    with RawClient(own_broker.bootstrap) as client:
        with ExitStack() as stack:
            crowd = [stack.enter_context(RawClient(own_broker.bootstrap)) for _ in range(LIMIT + 100)]
            assert crowd[-1].is_closed_by_the_broker()
            create_topic(client, "t", partitions=10)
            for partition in range(10):
                assert produce(client, "t", partition=partition).error_code == 0

        for partition in range(10):
            assert produce(client, "t", partition=partition).error_code == 0
    with RawClient(own_broker.bootstrap) as client:
        assert produce(client, "t").error_code == 0
    assert own_broker.complaints() == []


def produce_to_all(client: RawClient, topic: str, partitions: int) -> None:
    """Write a batch to every partition, to many of them with one request."""
    for start in range(0, partitions, AT_A_TIME):
        batches = [
            PartitionProduceData(index=partition, records=make_batch([b"%d" % partition]))
            for partition in range(start, start + AT_A_TIME)
        ]
        topics = [TopicProduceData(name=topic, partition_data=batches)]
        response = client.ask(ProduceRequest(acks=1, timeout_ms=10_000, topic_data=topics), 9)
        assert {each.error_code for each in response.responses[0].partition_responses} == {0}


def values_of_all(client: RawClient, topic: str, partitions: int) -> list[list[bytes | None]]:
    """Return the values in each partition."""
    values = []
    for partition in range(partitions):
        data = fetch(client, topic, partitions=[partition])
        assert data.error_code == 0
        values.append([record.value for record in records_in(data)])
    return values


@pytest.mark.parametrize(
    ("limit", "partitions"),
    [(1024, 600), pytest.param(4096, 3000, marks=pytest.mark.long)],  # with files for 312 and 1,848 of them
)
def test_more_written_partitions_than_files_that_may_be_open(
    tmp_path: Path, limit: int, partitions: int
) -> None:
    with BrokerProcess(tmp_path, inside=hard_limit(limit)) as broker, RawClient(broker.bootstrap) as client:
        create_topic(client, "many", partitions=partitions)
        produce_to_all(client, "many", partitions)
        produce_to_all(client, "many", partitions)

        assert values_of_all(client, "many", partitions) == [[b"%d" % each] * 2 for each in range(partitions)]
        assert broker.open_files < limit * 3 // 4
        with ExitStack() as stack:
            crowd = [stack.enter_context(RawClient(broker.bootstrap)) for _ in range(limit // 4)]
            assert produce(crowd[-1], "many", partition=0).error_code == 0
        broker.kill()
        broker.start()
        with RawClient(broker.bootstrap) as again:
            produce_to_all(again, "many", partitions)
            values = values_of_all(again, "many", partitions)
            assert values[1:] == [[b"%d" % each] * 3 for each in range(1, partitions)]
        assert broker.open_files < limit * 3 // 4
        assert broker.complaints() == []
