"""Commands whose standard streams are closed: nothing to read, and nobody who reads."""

import subprocess

import pytest

from cli.command import Command


@pytest.mark.parametrize(
    "line",
    ["topic list >&-", "topic list --json >&-", "produce streams a >&-", "produce streams <&-", "--help >&-"],
)
def test_a_stream_that_is_closed_is_no_failure(headrace: Command, line: str) -> None:
    headrace("topic", "create", "streams")
    done = subprocess.run(
        ["sh", "-c", f'"$@" {line}', "sh", *headrace.arguments()],
        env=headrace.environment,
        capture_output=True,
        timeout=40,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
