"""`headrace completion`: what Tab offers, in bash as a person has it, in zsh and fish by click's protocol."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from cli.command import TIMEOUT_S, Command

NOWHERE = "127.0.0.1:1"
HEADRACE = Path(sys.executable).with_name("headrace")

_BASH = """
eval "$SCRIPT"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_headrace_completion headrace
printf '%s\\n' "${COMPREPLY[@]}"
"""


@cache
def script(shell: str) -> str:
    return Command(NOWHERE).ok("completion", shell).text


def in_bash(headrace: Command, *words: str) -> list[str]:
    """What bash offers behind `headrace WORDS`, of which the last is begun."""
    path = f"{HEADRACE.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", _BASH, "bash", "headrace", *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
        env=headrace.environment | {"PATH": path, "SCRIPT": script("bash")},
    )
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


def by_protocol(headrace: Command, shell: str, words: Sequence[str], begun: str) -> list[str]:
    """What the script of another shell would be told."""
    said = {
        "_HEADRACE_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": " ".join(["headrace", *words, begun]),
        "COMP_CWORD": begun if shell == "fish" else str(len(words) + 1),
    }
    if shell == "fish":
        said["COMP_WORDS"] = " ".join(["headrace", *words])
    done = subprocess.run(
        [HEADRACE],
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
        env=headrace.environment | said,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_bash_completes_commands_and_options(headrace: Command) -> None:
    assert in_bash(headrace, "to") == ["topic"]
    assert {"list", "describe", "offsets"} <= set(in_bash(headrace, "topic", ""))
    assert in_bash(headrace, "topic", "create", "x", "--par") == ["--partitions"]
    assert in_bash(headrace, "broker", "des") == ["describe"]
    assert in_bash(headrace, "bench", "--acks", "a") == ["all"]


def test_bash_completes_what_is_in_the_cluster(headrace: Command) -> None:
    headrace.ok("topic", "create", "tabbed-one")
    headrace.ok("topic", "create", "tabbed-two")
    headrace.ok("produce", "tabbed-one", "x")
    headrace.ok("consume", "tabbed-one", "--group", "tabbers", "--exit-at-end")
    assert in_bash(headrace, "topic", "describe", "tabbed") == ["tabbed-one", "tabbed-two"]
    assert in_bash(headrace, "consume", "tabbed-o") == ["tabbed-one"]
    assert in_bash(headrace, "group", "describe", "tabb") == ["tabbers"]
    assert in_bash(headrace, "cluster", "drain", "") == ["1"]
    assert in_bash(headrace, "config", "set", "broker", "") == ["1"]
    assert "__consumer_offsets" not in in_bash(headrace, "topic", "describe", "")
    assert in_bash(headrace, "topic", "describe", "__con") == ["__consumer_offsets"]


def test_settings_complete_without_a_cluster() -> None:
    nobody = Command(NOWHERE)
    assert in_bash(nobody, "config", "set", "topic", "x", "retention") == ["retention.bytes", "retention.ms"]
    assert in_bash(nobody, "topic", "create", "x", "--config", "cleanup") == ["cleanup.policy"]
    assert "log.dirs" in in_bash(nobody, "up", "--set", "log.")
    assert "log.dirs" not in in_bash(nobody, "config", "set", "broker", "1", "log.")


def test_a_cluster_that_is_not_there_completes_nothing_and_says_nothing() -> None:
    nobody = Command(NOWHERE)
    assert in_bash(nobody, "topic", "describe", "") == []
    assert in_bash(nobody, "group", "describe", "") == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_get_names_and_what_they_are(headrace: Command, shell: str) -> None:
    headrace.ok("topic", "create", f"offered-{shell}")
    found = "\n".join(by_protocol(headrace, shell, ["topic", "describe"], f"offered-{shell}"))
    assert f"offered-{shell}" in found
    commands = "\n".join(by_protocol(headrace, shell, [], "doc"))
    assert "doctor" in commands
    assert "Check the machine and a cluster" in commands


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_printed_and_the_shell_understands_it(shell: str, tmp_path: Path) -> None:
    assert "_HEADRACE_COMPLETE" in script(shell)
    program = shutil.which(shell)
    if program is not None:
        file = tmp_path / "script"
        file.write_text(script(shell))
        subprocess.run([program, "-n", str(file)], check=True, timeout=TIMEOUT_S)


def test_tab_imports_no_command_it_does_not_need() -> None:
    """Names come out of a table: no client library, no broker, no Spark."""
    looked = (
        "import sys, atexit\n"
        "atexit.register(lambda: print(*(m for m in sys.modules"
        " if m.startswith(('confluent_kafka', 'pyspark', 'headrace.broker', 'rich'))), file=sys.stderr))\n"
        "from headrace.cli.main import main\n"
        "main()\n"
    )
    said = {"_HEADRACE_COMPLETE": "bash_complete", "COMP_WORDS": "headrace ", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", looked],
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
        env=Command(NOWHERE).environment | said,
    )
    assert "plain,topic" in done.stdout
    assert done.stderr.strip() == ""
