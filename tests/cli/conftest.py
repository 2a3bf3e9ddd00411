"""One broker that the commands of all tests talk to; each test has topics of its own."""

from collections.abc import Iterator

import pytest

from cli.command import Command
from support.process import ClusterProcess, UpProcess


@pytest.fixture(scope="session")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    with UpProcess(tmp_path_factory.mktemp("up")) as process:
        yield process
        assert process.running, process.log_tail()
        assert " ERROR " not in process.log.read_text(), process.log_tail()


@pytest.fixture
def headrace(up: UpProcess) -> Command:
    return Command(up.bootstrap)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    """Three brokers; a test that needs them all leaves them running."""
    with ClusterProcess(tmp_path_factory.mktemp("cluster")) as process:
        yield process
        assert process.running, process.log_tail()
        members = process.members.keys() - {"gateway"}  # which starts with its first request
        assert members == {"coordinator", "broker-1", "broker-2", "broker-3"}, process.log_tail()
