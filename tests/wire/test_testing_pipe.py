"""What a process of a test says before it is ready."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.testing.nodes import NotStarted, ProcessNode
from headrace.testing.process import lines


def wait_until_ready(said: bytes, log: Path, *, then: str) -> None:
    """As a broker that says this in one piece would be waited for."""
    log.touch()
    node = ProcessNode({"broker.id": "1"}, log)
    script = f"import os; os.write(1, {said!r}); {then}"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            node._wait_until_ready(process)
        finally:
            process.kill()


def test_a_warning_that_comes_together_with_ready_does_not_hide_it(tmp_path: Path) -> None:
    said = b"WARNING the disk is slow\nWARNING still\nready bootstrap=127.0.0.1:9092\n"
    wait_until_ready(said, tmp_path / "log", then="input()")


@pytest.mark.parametrize(
    ("said", "last"),
    [
        (b"WARNING full\nrefused the disk is full\n", "refused the disk is full"),
        (b"WARNING full\n", "WARNING full"),
    ],
)
def test_one_that_does_not_get_ready_is_told_of_with_its_last_words(
    tmp_path: Path, said: bytes, last: str
) -> None:
    with pytest.raises(NotStarted, match=f"broker 1 has not started: {last}"):
        wait_until_ready(said, tmp_path / "log", then="pass")


def test_a_line_in_pieces_is_one_and_half_a_line_is_not_waited_for_without_end() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe, os.fdopen(writing, "wb", buffering=0) as other_end:
        other_end.write(b"rea")
        said = lines(pipe, 30)
        other_end.write(b"dy \nnot yet")
        assert next(said) == "ready "
        assert list(lines(pipe, 0)) == []
