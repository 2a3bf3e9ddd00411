"""One run of the `headrace` command, in a process of its own, which is forked: see `fork_server`."""

import json
import os
import pty
import re
import subprocess
import sys
from typing import Any, NamedTuple

from cli.fork_server import fork_server
from support.process import clean_environment

CREATED = re.compile(r"headrace: topic \S+ did not exist and was created.*\n")
TIMEOUT_S = 120  # a command that hangs; `doctor` waits for each request to a broker that does not answer


class Result(NamedTuple):
    status: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The one line on stderr of a command that failed, --json or not; it printed nothing else."""
        assert self.status != 0, self
        assert self.out == b"", self
        if self.err.startswith("{"):
            (sentence,) = json.loads(self.err).values()
            return str(sentence)
        assert self.err.startswith("headrace: "), self
        assert self.err.count("\n") == 1, self
        return self.err.removeprefix("headrace: ").strip()


class Command:
    """Runs `headrace` against one cluster."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def arguments(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "headrace", *arguments]

    @property
    def environment(self) -> dict[str, str]:
        # Profiles of the developer who runs the tests must not count.
        return clean_environment() | {"HEADRACE_BOOTSTRAP": self.bootstrap, "XDG_CONFIG_HOME": os.devnull}

    def __call__(
        self, *arguments: str, stdin: bytes = b"", environment: dict[str, str] | None = None
    ) -> Result:
        status, out, err = fork_server().run(
            arguments, stdin=stdin, environment=self.environment | (environment or {}), timeout_s=TIMEOUT_S
        )
        return Result(status, out, err.decode())

    def ok(self, *arguments: str, stdin: bytes = b"") -> Result:
        """A run that must succeed and complain of nothing, except that it has created a topic."""
        result = self(*arguments, stdin=stdin)
        assert (result.status, CREATED.sub("", result.err)) == (0, ""), result
        return result

    def answered(self, answer: str, *arguments: str) -> tuple[int, str]:
        """Run a command at a terminal, answer its question, and return its status and what it has said."""
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            self.arguments(*arguments),
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self.environment,
        ) as process:
            os.close(theirs)
            os.write(ours, f"{answer}\n".encode())
            said, _ = process.communicate(timeout=TIMEOUT_S)
            os.close(ours)
            return process.returncode, said.decode()
