"""What a process of a test says before it is ready."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest

from headrace.cli.machine.process import Service
from headrace.testing.nodes import NotStarted, ProcessNode
from support.process import lines


class Saying(Service):
    """A process that says something in one piece, instead of a broker."""

    def __init__(self, said: bytes, log: Path, then: str) -> None:
        super().__init__("broker-1", log, (), service="broker", settings={})
        self._script = f"import os; os.write(1, {said!r}); {then}"

    async def _launch(self) -> Process:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-c", self._script, stdin=PIPE, stdout=PIPE
        )


def start(said: bytes, log: Path, *, then: str) -> None:
    """Wait for it as for a broker that says this."""
    log.write_text("the end of its log")
    node = ProcessNode({"broker.id": "1", "log.dirs": str(log.parent), "zookeeper.connect": "nowhere"}, log)
    node._process = Saying(said, log, then)

    async def start_and_end() -> None:
        try:
            await node.start()
        finally:
            await node.kill()

    asyncio.run(start_and_end())


def test_a_warning_that_comes_together_with_ready_does_not_hide_it(tmp_path: Path) -> None:
    said = b"WARNING the disk is slow\nWARNING still\nready bootstrap=127.0.0.1:9092\n"
    start(said, tmp_path / "log", then="input()")


@pytest.mark.parametrize(
    ("said", "how"),
    [
        (b"WARNING full\nrefused the disk is full\n", "cannot run: the disk is full"),
        (b"WARNING full\n", "was stopped by somebody else"),
    ],
)
def test_the_error_of_one_that_does_not_get_ready_has_its_reason_and_its_log(
    tmp_path: Path, said: bytes, how: str
) -> None:
    with pytest.raises(NotStarted, match=f"broker-1 {how}\nthe end of its log"):
        start(said, tmp_path / "log", then="pass")


def test_a_line_in_pieces_is_one_and_half_a_line_is_not_waited_for_without_end() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe, os.fdopen(writing, "wb", buffering=0) as other_end:
        other_end.write(b"rea")
        said = lines(pipe, 30)
        other_end.write(b"dy \nnot yet")
        assert next(said) == "ready "
        assert list(lines(pipe, 0)) == []
