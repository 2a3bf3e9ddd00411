"""Brokers that let groups be quick: heartbeats and sessions may be shorter than anybody should want."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from wire.process import BrokerProcess

QUICK: Final = {
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "60000",  # longer than any test may take
}


@contextmanager
def quick_broker(root: Path, **settings: str) -> Iterator[BrokerProcess]:
    """A broker, with `settings` besides (underscores for dots); at the end its log must be clean."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    with BrokerProcess(root, QUICK | given) as process:
        yield process
        assert process.running
        assert process.complaints() == []
