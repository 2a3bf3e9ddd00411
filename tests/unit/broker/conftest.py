"""A coordinator of groups at work, for tests of brokers."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from unit.broker.group_office import HERE, MovableLoop, Office


@pytest.fixture
def movable_loop() -> Iterator[MovableLoop]:
    loop = MovableLoop()
    asyncio.set_event_loop(loop)
    yield loop
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture
def open_office(tmp_path: Path, movable_loop: MovableLoop) -> Iterator[Callable[..., Office]]:
    offices: list[Office] = []

    def open_one(*replicas: int) -> Office:
        for office in offices:
            office.broker.stop_coordinators()
            office.log.release()
        offices.append(Office(tmp_path, movable_loop, replicas or (HERE,)))
        return offices[-1]

    yield open_one
    for office in offices:
        office.broker.stop_coordinators()
        office.log.release()
    movable_loop.run_until_complete(asyncio.sleep(0))


@pytest.fixture
def office(open_office: Callable[..., Office]) -> Office:
    return open_office()
