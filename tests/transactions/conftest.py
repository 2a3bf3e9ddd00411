"""Three running brokers, and the programs that run against them; tests skip where there is no program."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.kafka_tools.java import KafkaUnavailableError
from transactions.brokers import Brokers, running_brokers
from transactions.java_programs import JavaPrograms, find_programs


@pytest.fixture(scope="session")
def programs() -> JavaPrograms:
    try:
        return find_programs()
    except KafkaUnavailableError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Brokers]:
    with running_brokers(tmp_path) as running:
        yield running
