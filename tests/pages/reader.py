"""A reader who follows a page: one shell from the first block to the last, and servers in other terminals.

The shell has an empty home directory and reads and writes below a temporary directory, which replaces /tmp in
every block. The ports of the page are replaced by free ones, so that a page can be run beside a broker.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Final, Self

from headrace.broker.config import BrokerConfig
from headrace.broker.settings import InvalidSetting
from headrace.ports import reserved
from headrace.testing.process import clean_environment, lines
from pages.expected import is_expected
from pages.markdown import Block

TIMEOUT_S: Final = 120.0
SPARK_TIMEOUT_S: Final = 600.0
HOST: Final = "127.0.0.1"
PORTS: Final = (9092, 9093, 9094, 8080)  # of the pages: three brokers and the gateway
ENDED: Final = "--- the block has ended"
READY: Final = {"headrace up ": re.compile("^ready "), "headrace pipeline run ": re.compile(" batch 0: ")}
"""Commands that run until Ctrl-C, and the line after which a reader goes on."""
QUIET_CURL: Final = (
    "silent\nshow-error\nfail\n"  # no progress bar on stderr, and an error status for an error
)


class BlockFailed(AssertionError):
    """A block does not do what its page says."""

    def __init__(self, block: Block, why: str) -> None:
        super().__init__(f"{block.place}: {why}\n\n{block.text}")


class Server:
    """A command in a terminal of its own, until Ctrl-C."""

    def __init__(self, command: str, log: Path, options: dict[str, Any], timeout_s: float) -> None:
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                **options,
            )
        self.command, self._log = command, log
        self.printed = self._until(_ready(command), timeout_s)

    def _until(self, ready: re.Pattern[str], timeout_s: float) -> str:
        """Return what it prints up to the line that says that it is ready."""
        assert self._process.stdout is not None
        said = []
        for line in lines(self._process.stdout, timeout_s):
            said.append(f"{line}\n")
            if ready.search(line):
                return "".join(said)
        self.kill()
        raise RuntimeError(f"`{self.command}` is not ready: {''.join(said)}{self._log.read_text()[-1000:]}")

    def interrupt(self) -> int:
        """Press Ctrl-C, and return the status."""
        self._process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + SPARK_TIMEOUT_S
        assert self._process.stdout is not None
        for _ in lines(self._process.stdout, deadline - time.monotonic()):
            pass  # a full pipe would stop it
        status = self._process.wait(TIMEOUT_S)
        self._process.stdout.close()
        return status

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        _pipe(self._process.stdout).close()


class Reader:
    """Runs the blocks of one page, in order."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._home = root / "home"
        self._errors = root / "stderr"
        self._servers: list[Server] = []
        self._stack = ExitStack()
        self._count = 0

    def __enter__(self) -> Self:
        self._home.mkdir()
        (self._home / ".curlrc").write_text(QUIET_CURL)
        brokers = self._stack.enter_context(reserved(HOST, 0, 3))
        (http,) = self._stack.enter_context(reserved(HOST, 0, 1))
        self._ports = dict(zip(PORTS, [*brokers, http], strict=True))
        self._shell = self._stack.enter_context(
            subprocess.Popen(
                ["bash", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **self._options()
            )
        )
        self._tell("set -e")
        return self

    def __exit__(self, *_error: object) -> None:
        for server in self._servers:
            server.kill()
        self._shell.kill()
        self._stack.close()

    def run(self, block: Block) -> None:
        """Run a block; BlockFailed if a command fails, or prints something else than the page says."""
        timeout_s = SPARK_TIMEOUT_S if block.needs_spark else TIMEOUT_S
        try:
            if block.before:
                self._serve(self._here(block.before), timeout_s)
            printed = "".join(self._printed(block, timeout_s))
        except (InvalidSetting, RuntimeError, ValueError) as error:
            raise BlockFailed(block, str(error)) from error
        expected = None if block.prints is None else self._here(block.prints)
        if expected is not None and not is_expected(printed, expected, in_order=block.in_order):
            raise BlockFailed(block, f"it printed\n{printed}\nand not\n{expected}")

    def finish(self) -> None:
        """Press Ctrl-C in every terminal; RuntimeError if a server ends with an error."""
        while self._servers:
            server = self._servers.pop()
            if status := server.interrupt():
                raise RuntimeError(f"`{server.command}` has ended with status {status}")

    def _printed(self, block: Block, timeout_s: float) -> Iterator[str]:
        text = self._here(block.text)
        match block.language:
            case "sh":
                for serves, commands in _split(text):
                    if serves:
                        yield self._serve(commands, timeout_s)
                    else:
                        yield self._commands(commands, timeout_s, warns=block.needs_spark)
            case "python":
                yield self._python(text, timeout_s, warns=block.needs_spark)
            case "properties":
                file = self._root / "server.properties"
                file.write_text(text)
                BrokerConfig.load(file=file, sets={})  # raises an error for an invalid setting
            case _:
                raise ValueError(f"nobody knows how to run {block.language or 'a block without a language'}")

    def _python(self, text: str, timeout_s: float, *, warns: bool) -> str:
        if re.search(r"^def test_", text, re.MULTILINE):
            (self._root / "test_orders.py").write_text(text)
            return self._commands("python -m pytest -q test_orders.py", timeout_s, warns=warns)
        self._count += 1
        name = f"block_{self._count}.py"
        (self._root / name).write_text(text)
        return self._commands(f"python {name}", timeout_s, warns=warns)

    def _commands(self, commands: str, timeout_s: float, *, warns: bool) -> str:
        """Return what commands print in the shell; RuntimeError if one fails, or complains on stderr."""
        script = self._root / "block.sh"
        script.write_text(commands)
        self._errors.write_bytes(b"")
        self._tell(f"source {script} </dev/null 2>{self._errors}\nprintf '\\n%s\\n' '{ENDED}'")
        said: list[str] = []
        for line in lines(_pipe(self._shell.stdout), timeout_s):
            if line == ENDED:
                break
            said.append(f"{line}\n")
        else:
            state = "failed" if self._has_ended() else "takes too long"
            raise RuntimeError(f"it {state}: {self._errors.read_text()}\n{''.join(said)}")
        complaint = self._errors.read_text()
        if complaint and not warns:
            raise RuntimeError(f"it complains: {complaint}")
        return "".join(said).removesuffix("\n")

    def _serve(self, command: str, timeout_s: float) -> str:
        """Start a server in a terminal; Ctrl-C ends another one with the same ports before."""
        if command.startswith("headrace up "):
            self.finish()
            command = f"{command.strip()} --port {self._ports[9092]} --http-port {self._ports[8080]}"
        server = Server(command.strip(), self._root / "servers.log", self._options(), timeout_s)
        self._servers.append(server)
        return server.printed

    def _has_ended(self) -> bool:
        try:
            return self._shell.wait(1) is not None
        except subprocess.TimeoutExpired:
            return False

    def _tell(self, text: str) -> None:
        shell = _pipe(self._shell.stdin)
        shell.write(f"{text}\n".encode())
        shell.flush()

    def _options(self) -> dict[str, Any]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {
            "PATH": path,
            "HOME": str(self._home),
            "HEADRACE_BOOTSTRAP": f"{HOST}:{self._ports[9092]}",
            "HEADRACE_REGISTRY": f"http://{HOST}:{self._ports[8080]}",
        }
        return {"env": clean_environment() | environment, "cwd": self._root}

    def _here(self, text: str) -> str:
        """Return text of the page with our directory and our ports."""
        for port, ours in self._ports.items():
            text = text.replace(f"{HOST}:{port}", f"{HOST}:{ours}")
        return text.replace("/tmp/", f"{self._root}/")


def _split(text: str) -> Iterator[tuple[bool, str]]:
    """Yield servers, each with True, and the commands between them."""
    waiting = ""
    for line in re.findall(r"(?:[^\n]*\\\n)*[^\n]*\n", text):
        if any(map(line.startswith, READY)):
            if waiting.strip():
                yield False, waiting
            yield True, line.partition(" #")[0]
            waiting = ""
        else:
            waiting += line
    if waiting.strip():
        yield False, waiting


def _ready(command: str) -> re.Pattern[str]:
    return next(ready for name, ready in READY.items() if command.startswith(name))


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
