from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.storage.config import LogConfig
from headrace.storage.directory import LogDirectory
from headrace.storage.identity import Identity
from headrace.storage.log import Log
from support.clock import SettableClock
from support.logs import SMALL, open_test_log
from support.records import TIMESTAMP
from unit.storage.directory_contents import CONFIG, US, OpenDirectory
from unit.storage.log_contents import OpenLog


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock(TIMESTAMP)


@pytest.fixture
def open_log(tmp_path: Path, clock: SettableClock) -> Iterator[OpenLog]:
    """Opens `orders-0`, with settings of a topic and options of an opening, as often as it is called."""
    opened: list[Log] = []

    def opening(config: LogConfig | None = None, **options: Any) -> Log:
        settings = {name: options.pop(name) for name in list(options) if name in LogConfig.__slots__}
        if config is None:
            config = LogConfig(
                **{"segment_bytes": SMALL.segment_bytes, "index_interval_bytes": 200} | settings
            )
        opened.append(open_test_log(tmp_path / "orders-0", config, now_ms=clock, **options))
        return opened[-1]

    yield opening
    for log in opened:
        log.release()


@pytest.fixture
def log(open_log: OpenLog) -> Log:
    return open_log()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture
def open_directory(path: Path) -> Iterator[OpenDirectory]:
    """Open the directory again and again, as one broker or another."""
    opened: list[LogDirectory] = []

    def opening(
        identity: Identity = US, *, config: LogConfig = CONFIG, max_open_files: int = 1000
    ) -> LogDirectory:
        opened.append(
            LogDirectory.open(
                path,
                identity,
                config_of=lambda _topic: config,
                now_ms=SettableClock(),
                max_open_files=max_open_files,
            )
        )
        return opened[-1]

    yield opening
    for directory in opened:
        directory.release()
