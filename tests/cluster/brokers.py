"""One broker of a cluster: a process that is stopped, killed, paused and started again on its data."""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cluster.places import HERE, Place
from cluster.waiting import until
from ports import free_port
from support.process import ServerProcess

STARTUP: Final = Path(__file__).parent / "startup"


class BrokerProcess(ServerProcess):
    """`headrace broker`, always at the same port and with the same directory."""

    def __init__(
        self, broker_id: int, root: Path, zookeeper: str, settings: Mapping[str, str], *, place: Place = HERE
    ) -> None:
        self.id = broker_id
        self.log_dir = root / f"broker-{broker_id}"
        self.bootstrap = f"{place.host}:{free_port() if place is HERE else 9092}"
        given = {
            "broker.id": str(broker_id),
            "broker.rack": f"rack-{broker_id}",
            "log.dirs": str(self.log_dir),
            "listeners": f"PLAINTEXT://{self.bootstrap}",
            "zookeeper.connect": zookeeper,
            **settings,
        }
        sets = [f"--set={name}={value}" for name, value in given.items()]
        self._release = root / f"release-{broker_id}"
        super().__init__(
            ["broker", *sets],
            root / f"broker-{broker_id}.log",
            {"TEST_RELEASE_FILE": str(self._release)},
            inside=place.inside,
        )
        self.use(os.environ.get("PYTHONPATH", ""))
        self.paused = False

    def use(self, source: str | Path) -> None:
        """Run the version of Headrace in this directory from the next start on; empty: the installed one."""
        self._environment["PYTHONPATH"] = os.pathsep.join(str(each) for each in (STARTUP, source) if each)

    @contextmanager
    def stuck(self) -> Iterator[None]:
        """Block its event loop meanwhile, and no other thread of it (see startup/sitecustomize.py)."""
        self.signal(signal.SIGUSR1)
        try:
            yield
        finally:
            self._release.touch()

    def pause(self) -> None:
        """SIGSTOP: it does nothing any more, and nobody is told; return when it has stopped."""
        self.signal(signal.SIGSTOP)
        stat = Path(f"/proc/{self.pid}/stat")
        until(f"broker {self.id} is stopped", lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
        self.paused = True

    def resume(self) -> None:
        self.signal(signal.SIGCONT)
        self.paused = False

    def kill(self) -> None:
        super().kill()
        self.paused = False

    def complaints(self) -> list[str]:
        """Errors and stack traces in its log: what no fault of others may bring about."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if " ERROR " in line or line.startswith("Traceback")]
