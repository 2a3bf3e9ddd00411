"""A reader who follows a page: one shell and one Python for all blocks, and servers in other terminals.

The shell has an empty home directory and reads and writes below a temporary directory, which replaces /tmp
and other directories in every block. The ports of the page are replaced by free ones, so that a page can
be run beside a broker.
"""

import json
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

import yaml  # type: ignore[import-untyped]

from headrace.broker.settings.config import BrokerConfig
from headrace.broker.settings.setting import InvalidSetting
from headrace.client.errors import ClientError
from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.system.ports import reserved
from pages.expected import is_expected
from pages.markdown import CONSOLE, Block
from support.process import clean_environment, lines

TIMEOUT_S: Final = 300.0
SPARK_TIMEOUT_S: Final = 600.0
HOST: Final = "127.0.0.1"
PORTS: Final = (9092, 9093, 9094, 9095, 8080, 8081, 2181)  # of the pages: brokers, gateways and ZooKeeper
DIRECTORIES: Final = (
    "/var/lib/",
    "/etc/headrace/",
    "/disk1/",
    "/disk2/",
    "/data/",
)  # of the pages, beside /tmp
ENDED: Final = "--- the block has ended"
READY: Final = {
    re.compile(r"(?:\w+=\S+ )*headrace (?:up|coordinator|gateway|broker --config) "): re.compile("^ready "),
    re.compile("headrace pipeline run (?!.*--once)"): re.compile(" batch 0: "),
}
"""Commands that run until Ctrl-C, and the line after which a reader goes on."""
# A reader has fewer plugins of pytest than we have, and does not wait for them.
TESTS: Final = (
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 "
    "python -m pytest -q -p no:cacheprovider -p headrace.testing.plugin test_orders.py"
)
PYTHON: Final = f"""
import sys
names = {{"__name__": "__main__"}}
for path in map(str.rstrip, sys.stdin):
    with open(path) as file:
        text = file.read()
    exec(compile(text, path, "exec"), names)
    print("\\n{ENDED}", flush=True)
"""
"""Runs the blocks of a page in one process: a block uses what the blocks before it have defined."""
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
                ["bash", "-c", f"exec env {command}"],
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
        """Press Ctrl-C unless it has ended, and return the status."""
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
        self._errors, self._python_errors = root / "stderr", root / "python-stderr"
        self._servers: list[Server] = []
        self._stack = ExitStack()
        self._python: subprocess.Popen[bytes] | None = None
        self._count = 0

    def __enter__(self) -> Self:
        self._home.mkdir()
        for directory in DIRECTORIES:
            Path(f"{self._root}{directory}").mkdir(parents=True)
        (self._home / ".curlrc").write_text(QUIET_CURL)
        brokers = self._stack.enter_context(reserved(HOST, 0, 4))
        others = self._stack.enter_context(reserved(HOST, 0, 3))
        self._ports = dict(zip(PORTS, [*brokers, *others], strict=True))
        self._shell = self._start(["bash", "--norc"], None)
        self._tell(self._shell, "set -e")
        return self

    def _start(self, command: list[str], errors: IO[bytes] | None) -> subprocess.Popen[bytes]:
        return self._stack.enter_context(
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, **self._options()
            )
        )

    def __exit__(self, *_error: object) -> None:
        for server in self._servers:
            server.kill()
        self._shell.kill()
        if self._python is not None:
            self._python.kill()
        self._stack.close()

    def run(self, block: Block) -> None:
        """Run a block; BlockFailed if a command fails, or prints something else than the page says."""
        timeout_s = SPARK_TIMEOUT_S if block.needs_spark else TIMEOUT_S
        try:
            for _ in self._shell_commands(self._here(f"{block.before}\n", block), timeout_s, warns=True):
                pass
            if block.language == CONSOLE:
                self._run_console(block, timeout_s)
                return
            printed = "".join(self._printed(block, timeout_s))
            self._compare(printed, block.prints, block)
        except (ClientError, InvalidSetting, RuntimeError, ValueError, yaml.YAMLError) as error:
            raise BlockFailed(block, str(error)) from error

    def _run_console(self, block: Block, timeout_s: float) -> None:
        """Run commands, each of which is followed by its output."""
        for command in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            lines_of_command = re.match(r"(?:[^\n]*\\\n)*[^\n]*\n", command)
            assert lines_of_command is not None, command
            line, output = lines_of_command[0], command[lines_of_command.end() :]
            fails = re.search("^headrace: ", output, re.MULTILINE) is not None
            run = f"{{ {self._here(line, block).rstrip()}\n}} 2>&1"
            status = f"! {run}" if fails or block.fails else run
            printed = self._commands(f"{status}\n", timeout_s, warns=False)
            self._compare(printed, output or None, block)

    def _compare(self, printed: str, prints: str | None, block: Block) -> None:
        if prints is None:
            return
        expected = self._here(prints, block)
        if not is_expected(printed, expected, in_order=block.in_order, numbers_differ=block.numbers_differ):
            raise BlockFailed(block, f"it printed\n{printed}\nand not\n{expected}")

    def finish(self) -> None:
        """Press Ctrl-C in every terminal; RuntimeError if a server ends with an error."""
        while self._servers:
            server = self._servers.pop()
            if status := server.interrupt():
                raise RuntimeError(f"`{server.command}` has ended with status {status}")

    def _printed(self, block: Block, timeout_s: float) -> Iterator[str]:
        text = self._here(block.text, block)
        if block.file:
            path = self._root / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        match block.language:
            case "sh":
                yield from self._shell_commands(text, timeout_s, warns=block.needs_spark)
            case "python" if block.file and "sys.argv" in text:
                compile(text, block.file, "exec")  # a command that is run next gives it arguments
            case "python" if re.search(r"^(?:def test_|class \w+\(unittest)", text, re.MULTILINE):
                (self._root / "test_orders.py").write_text(text)
                yield self._commands(TESTS, timeout_s, warns=block.needs_spark)
            case "python":
                yield self._run_python(text, timeout_s, warns=block.needs_spark)
            case "properties":
                yield from self._use_properties(text, timeout_s)
            case "json":
                for document in [text] if text.startswith("{\n") else text.splitlines():
                    json.loads(document)
            case "yaml":
                yaml.safe_load(text)
            case "ini" if block.file:
                pass  # what is run next reads it
            case _:
                raise ValueError(f"nobody knows how to run {block.language or 'a block without a language'}")

    def _shell_commands(self, text: str, timeout_s: float, *, warns: bool) -> Iterator[str]:
        for serves, commands in _split(text):
            if serves:
                yield self._serve(commands, timeout_s)
            else:
                yield self._commands(commands, timeout_s, warns=warns)

    def _use_properties(self, text: str, timeout_s: float) -> Iterator[str]:
        """Start a broker with these settings, if they are complete; otherwise check each of them."""
        if "bootstrap.servers=" in text:
            (self._root / "client.properties").write_text(text)
            ConnectionSettings.load(self._root / "client.properties").check()
            return
        file = self._root / "server.properties"
        file.write_text(text)
        BrokerConfig.load(file=file, sets={})
        if "zookeeper.connect=" in text and "listeners=" in text:
            yield self._serve("headrace broker --config server.properties", timeout_s)

    def _run_python(self, text: str, timeout_s: float, *, warns: bool) -> str:
        """Run a block in the Python of this page."""
        if self._python is None:
            with self._python_errors.open("wb") as errors:
                self._python = self._start(["python", "-c", PYTHON], errors)
        self._count += 1
        path = self._root / f"block_{self._count}.py"
        path.write_text(text)
        os.truncate(self._python_errors, 0)
        self._tell(self._python, str(path))
        return self._said(self._python, self._python_errors, timeout_s, warns=warns)

    def _commands(self, commands: str, timeout_s: float, *, warns: bool) -> str:
        """Return what commands print in the shell; RuntimeError if one fails, or complains on stderr."""
        script = self._root / "block.sh"
        script.write_text(commands)
        self._errors.write_bytes(b"")
        self._tell(self._shell, f"source {script} </dev/null 2>{self._errors}\nprintf '\\n%s\\n' '{ENDED}'")
        return self._said(self._shell, self._errors, timeout_s, warns=warns)

    def _said(self, process: subprocess.Popen[bytes], errors: Path, timeout_s: float, *, warns: bool) -> str:
        """Return what a process prints until the end of a block."""
        said: list[str] = []
        for line in lines(_pipe(process.stdout), timeout_s):
            if line == ENDED:
                break
            said.append(f"{line}\n")
        else:
            state = "failed" if _has_ended(process) else "takes too long"
            raise RuntimeError(f"it {state}: {errors.read_text()}\n{''.join(said)}")
        complaint = errors.read_text()
        if complaint and not warns:
            raise RuntimeError(f"it complains: {complaint}")
        return "".join(said).removesuffix("\n")

    def _serve(self, command: str, timeout_s: float) -> str:
        """Start a server in a terminal; Ctrl-C ends another one with the same ports before."""
        if re.search("headrace (?:up|coordinator) ", command):
            self.finish()
        if "headrace up " in command:
            command = f"{command.strip()} --port {self._ports[9092]} --http-port {self._ports[8080]}"
        server = Server(command.strip(), self._root / "servers.log", self._options(), timeout_s)
        self._servers.append(server)
        return server.printed

    def _tell(self, process: subprocess.Popen[bytes], text: str) -> None:
        stdin = _pipe(process.stdin)
        stdin.write(f"{text}\n".encode())
        stdin.flush()

    def _options(self) -> dict[str, Any]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {
            "PATH": path,
            "HOME": str(self._home),
            "HEADRACE_BOOTSTRAP": f"{HOST}:{self._ports[9092]}",
        }
        return {"env": clean_environment() | environment, "cwd": self._root}

    def _here(self, text: str, block: Block) -> str:
        """Return text of the page with our directory and our ports."""
        for old, new in block.read:
            text = text.replace(old, new)
        for port, ours in self._ports.items():
            text = re.sub(rf"(?:(?<=:)|(?<=port )){port}\b", str(ours), text)
        text = text.replace("/tmp/", f"{self._root}/")
        for directory in DIRECTORIES:
            text = text.replace(directory, f"{self._root}{directory}")
        return text


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        return process.wait(1) is not None
    except subprocess.TimeoutExpired:
        return False


def _split(text: str) -> Iterator[tuple[bool, str]]:
    """Yield servers, each with True, and the commands between them."""
    waiting = ""
    for line in re.findall(r"(?:[^\n]*\\\n)*[^\n]*\n", text):
        if any(command.match(line) for command in READY):
            if waiting.strip():
                yield False, waiting
            yield True, line.partition(" #")[0]
            waiting = ""
        else:
            waiting += line
    if waiting.strip():
        yield False, waiting


def _ready(command: str) -> re.Pattern[str]:
    return next(ready for pattern, ready in READY.items() if pattern.match(command))


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
