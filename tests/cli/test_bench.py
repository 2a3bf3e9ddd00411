"""`headrace bench`: on a cluster that runs, on one of its own, and ended in the middle."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from cli.command import TIMEOUT_S, Command
from cli.members import wait_until
from support.process import clean_environment

SHORT = ("--seconds", "0.3", "--partitions", "2")


def test_a_running_cluster_is_measured_and_left_as_it_was(headrace: Command) -> None:
    found = headrace.ok("bench", *SHORT, "--record-size", "100", "--json").json
    produced, consumed = found["throughput"]
    assert (produced["phase"], consumed["phase"]) == ("produce", "consume")
    assert 0 < consumed["records"] <= produced["records"]
    assert found["received"]["p50"] <= found["received"]["p99"] <= found["received"]["max"]
    assert found["acknowledged"]["max"] > 0
    assert not _topics(headrace)


def test_a_person_sees_the_setup_and_a_line_for_each_phase(headrace: Command) -> None:
    lines = headrace.ok("bench", *SHORT, "--only", "consume", "--compression", "zstd").text.splitlines()
    assert lines[0] == (
        "1 broker, 2 partitions, 1 replica each, acks=all, compression zstd, records of 1,000 bytes"
    )
    assert [line.split()[0] for line in lines[3:5]] == ["produce", "consume"]


def test_without_a_cluster_it_has_its_own_and_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [*(sys.executable, "-m", "headrace", "bench", *SHORT, "--only", "latency", "--rate", "50"), "--json"],
        capture_output=True,
        check=True,
        timeout=TIMEOUT_S,
        env=clean_environment() | {"TMPDIR": str(tmp_path)},
    )
    assert b'"brokers": 1' in done.stdout
    assert done.stderr == b""
    assert list(tmp_path.iterdir()) == []


def test_what_is_begun_is_cleaned_up_when_it_is_interrupted(headrace: Command) -> None:
    with subprocess.Popen(
        headrace.arguments("bench", "--seconds", "60", "--rate", "10", "--only", "latency"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=headrace.environment,
    ) as running:
        wait_until(lambda: bool(_topics(headrace)), running.poll)
        running.send_signal(signal.SIGINT)
        said, complained = running.communicate(timeout=TIMEOUT_S)
    assert (running.returncode, said, complained.strip()) == (130, b"", b"")
    assert not _topics(headrace)


def test_what_cannot_be_is_one_sentence(headrace: Command) -> None:
    refused = headrace("bench", "--replicas", "2", *SHORT)
    assert refused.complaint == "--replicas 2 on 1 broker: there cannot be more than one on each"
    assert headrace("bench", "--record-size", "3").status == 2
    refused = headrace("bench", "--brokers", "1", *SHORT)
    assert refused.status == 2
    assert "--brokers is for a temporary cluster" in refused.complaint


def _topics(headrace: Command) -> list[Any]:
    every = headrace.ok("topic", "list", "--json").json
    return [each for each in every if each["name"].startswith("headrace-bench")]


def test_a_terminal_sees_how_far_it_is_and_the_result_stays_clean(headrace: Command) -> None:
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            headrace.arguments("bench", *SHORT, "--only", "produce", "--json"),
            stdout=subprocess.PIPE,
            stderr=theirs,
            env=headrace.environment | {"TERM": "xterm"},
        ) as running:
            os.close(theirs)
            drawn = _all_of(ours)
            said, _ = running.communicate(timeout=TIMEOUT_S)
    finally:
        os.close(ours)
    assert b"records/s" in drawn
    assert json.loads(said)["throughput"][0]["records"] > 0


def _all_of(terminal: int) -> bytes:
    """What is written to a terminal until nobody has it open any more."""
    drawn = bytearray()
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # how Linux says that the other side is closed
            return bytes(drawn)
        drawn += piece
