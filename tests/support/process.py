"""A real `headrace` process on loopback: started, stopped, killed, restarted with its data."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from signal import Signals
from typing import IO, Final, Self

from headrace.system.extras import HTTP, is_installed
from headrace.system.ports import reserved

START_TIMEOUT_S: Final = 90.0
STOP_TIMEOUT_S: Final = 20.0

_MEMBER: Final = "headrace.cli.machine.member"
_HEADRACE: Final = (sys.executable, "-m", "headrace")


class NotReady(Exception):
    """The process ended, or was not ready in time; the message has the end of its log."""


class ServerProcess:
    """A command that prints `ready NAME=ADDRESS` and serves until a signal stops it.

    The end of the `with` block kills it.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
        *,
        inside: Sequence[str] = (),
    ) -> None:
        """`inside` is a command that runs another one, such as `ip netns exec NAME`."""
        self.arguments = list(arguments)
        self._inside = list(inside)
        self.log = log
        self.address = ""  # the first address in the ready line
        self.http = ""  # the address of its gateway, if it has one
        self.returncode: int | None = None  # of the last run
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        assert self._process is not None, "the process is not running"
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process, and return once it is ready."""
        self.launch()
        try:
            said = dict(each.partition("=")[::2] for each in self._ready_line().split()[1:])
            self.address = next(iter(said.values()))
            self.http = said.get("http", "")
        except BaseException:
            self.kill()
            raise

    def launch(self) -> None:
        """Start the process, and do not wait until it is ready."""
        assert not self.running, self.arguments
        if self._process is not None:
            self._reap()  # the last process has ended by itself
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._inside, *_HEADRACE, *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=clean_environment() | self._environment,
            )

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None, "the process is not running"
        self._process.send_signal(number)

    def stop(self, timeout_s: float = STOP_TIMEOUT_S, number: Signals = Signals.SIGTERM) -> float:
        """Stop the process cleanly, and return how many seconds that took."""
        assert self._process is not None, "the process is not running"
        began = time.monotonic()
        self._process.send_signal(number)
        self._process.wait(timeout_s)
        self._reap()
        return time.monotonic() - began

    def kill(self) -> None:
        """Kill the process with SIGKILL, as a crash would; do nothing if it has ended."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._reap()

    def wait_for_log(self, text: str, timeout_s: float = START_TIMEOUT_S) -> None:
        """Return once the log has `text` in it."""
        deadline = time.monotonic() + timeout_s
        while text not in self.log.read_text():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{text!r} is not in the log:\n{self.log_tail()}")
            time.sleep(0.01)

    def log_tail(self) -> str:
        return "\n".join(self.log.read_text().splitlines()[-20:])

    def _ready_line(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        line = next(lines(self._process.stdout, START_TIMEOUT_S), "")
        if not line.startswith("ready "):
            raise NotReady(f"{' '.join(self.arguments)} is not ready: {line}\n{self.log_tail()}")
        return line.strip()

    def _reap(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.stdout.close()
        self.returncode = self._process.returncode
        self._process = None


class UpProcess(ServerProcess):
    """`headrace up` in a directory of its own, on ports that stay reserved while it is down.

    with UpProcess(tmp_path) as up:
        Producer({"bootstrap.servers": up.bootstrap})
        up.kill()
        up.start()  # the same port, the same data
    """

    def __init__(
        self,
        root: Path,
        settings: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        inside: Sequence[str] = (),
    ) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.data = root / "data"
        self._options = [*arguments, *(f"--set={name}={value}" for name, value in (settings or {}).items())]
        self._ports = ExitStack()
        super().__init__(["up"], root / "up.log", environment, inside=inside)

    @property
    def bootstrap(self) -> str:
        return self.address

    @property
    def port(self) -> int:
        """The port of the first broker."""
        return int(self.address.partition(",")[0].rpartition(":")[2])

    def launch(self) -> None:
        """Start the process, on its last port if it had one, and do not wait until it is ready."""
        if self.arguments == ["up"]:
            host, brokers = self._option("--host", "127.0.0.1"), int(self._option("--brokers", "1"))
            first, *_ = self._ports.enter_context(reserved(host, 0, brokers))
            http = ["--http-port=0"] if is_installed(HTTP) else []
            self.arguments = ["up", f"--data={self.data}", f"--port={first}", *http, *self._options]
        super().launch()

    def __exit__(self, *_error: object) -> None:
        super().__exit__()
        self._ports.close()

    def _option(self, name: str, default: str) -> str:
        given = [each.partition("=")[2] for each in self._options if each.startswith(f"{name}=")]
        return given[-1] if given else default


class ClusterProcess(UpProcess):
    """`headrace up --brokers N`: a process with child processes, each of which a test may kill."""

    def __init__(
        self,
        root: Path,
        brokers: int = 3,
        settings: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(root, settings, [f"--brokers={brokers}", *arguments], environment)

    @property
    def members(self) -> dict[str, int]:
        """The ids of its child processes, by their names: `broker-1`, `coordinator`, `zookeeper-1`."""
        return {} if self._process is None else dict(_children(self._process.pid))

    def kill_all(self) -> None:
        """Kill all processes at once, as a power failure would."""
        pids = [self.pid, *self.members.values()]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.kill()

    def wait_for_member(self, name: str, *, but: int) -> int:
        """Return the id of the process `name` once it is another one than `but`."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            pid = self.members.get(name)
            if pid is not None and pid != but:
                return pid
            if time.monotonic() > deadline:
                raise TimeoutError(f"{name} was not restarted:\n{self.log_tail()}")
            time.sleep(0.01)


def _children(parent: int) -> Iterator[tuple[str, int]]:
    """Yield name and id of each child process of a `headrace up`."""
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (directory / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
            of = int((directory / "stat").read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        if of == parent and _MEMBER in arguments:
            yield arguments[arguments.index(_MEMBER) + 1], int(directory.name)
        elif of == parent and arguments[-1].endswith("zoo.cfg"):
            yield f"zookeeper-{Path(arguments[-1]).parent.name}", int(directory.name)


def clean_environment() -> dict[str, str]:
    """Return the environment of this process without the variables that configure Headrace."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")}


def lines(pipe: IO[bytes], timeout_s: float) -> Iterator[str]:
    """Yield every line as soon as it is complete, until the pipe ends or `timeout_s` seconds have passed.

    The buffer of `pipe` is not used, because `poll` does not see bytes in it.
    """
    deadline = time.monotonic() + timeout_s
    readable = select.poll()
    readable.register(pipe, select.POLLIN)
    rest = b""
    while readable.poll(max(0.0, deadline - time.monotonic()) * 1000):
        piece = os.read(pipe.fileno(), 65536)
        if not piece:
            return
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace")
