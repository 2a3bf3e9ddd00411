"""A broker for tests, with all it needs, in about 30 milliseconds.

with Broker(topics={"orders": 3}) as broker:
    Producer({"bootstrap.servers": broker.bootstrap})
    ...
    assert [record.value for record in broker.records("orders")] == [b"tea"]
"""

import signal
from pathlib import Path
from typing import Final

from headrace.testing.served import Served, Topics
from headrace.testing.settings import Settings

_ID: Final = 1


class Broker(Served):
    """One broker, in a thread of this process; with `process`, as a process beside it.

    Its data are in a temporary directory, or in `data` if they are to stay.
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
        """End it as a crash would, with SIGKILL if it is a process; `restart` brings it back."""
        self._loop.run(self._node(_ID).kill())

    def restart(self) -> None:
        """Start it again, with its port and its data; stop it first, in order, if it runs."""
        self._restart(_ID)

    def pause(self) -> None:
        """Have its process stand still (SIGSTOP): connected, and silent."""
        self._beside(_ID).signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Have it go on."""
        self._beside(_ID).signal(signal.SIGCONT)

    @property
    def pid(self) -> int:
        """Of its process."""
        return self._beside(_ID).pid
