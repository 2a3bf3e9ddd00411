"""More connections than there are descriptors: the logs keep theirs, and nothing is the worse for it."""

import resource
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from wire.process import BrokerProcess
from wire.raw import RawClient
from wire.requests import create_topic, produce

LIMIT: Final = 300


@contextmanager
def soft_limit(count: int) -> Iterator[int]:
    """Give processes that are started meanwhile a low limit, which they may raise to the one returned."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    try:
        yield hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


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
