"""A broker for tests, which starts in about 30 milliseconds.

with Broker(topics={"orders": 3}) as broker:
    Producer({"bootstrap.servers": broker.bootstrap})
    ...
    assert [record.value for record in broker.records("orders")] == [b"tea"]
"""

import signal
from pathlib import Path
from typing import Final

from headrace.testing.brokers import RunningBrokers, Settings, Topics

_ID: Final = 1


class Broker(RunningBrokers):
    """One broker, in a thread of this process; with `process`, as a process of its own.

    Its data is in a temporary directory, or in `data`, where it stays.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        topics: Topics | None = None,
        process: bool = False,
        data: Path | str | None = None,
    ) -> None:
        super().__init__(1, settings, topics=topics, process=process, data=data)

    def kill(self) -> None:
        """End the broker as a crash would, with SIGKILL if it is a process; `restart` starts it again."""
        self._loop.run(self._node(_ID).kill())

    def restart(self) -> None:
        """Restart the broker with the same port and data; if it runs, shut it down cleanly first."""
        self._restart(_ID)

    def pause(self) -> None:
        """Pause its process (SIGSTOP): connections stay open, but it does not answer."""
        self._process_node(_ID).signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume its process."""
        self._process_node(_ID).signal(signal.SIGCONT)

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self._process_node(_ID).pid
