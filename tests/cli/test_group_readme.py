"""The README's commands for consumer groups, run as they are written."""

import os
import re
import subprocess
import sys
from pathlib import Path

from cli.command import TIMEOUT_S, Command
from headrace.testing.process import UpProcess

README = Path(__file__).parents[2] / "README.md"


def test_the_commands_for_groups_work_as_written(tmp_path: Path) -> None:
    section = README.read_text("utf-8").partition("## Consumer groups")[2].partition("\n## ")[0]
    (commands,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    with UpProcess(tmp_path) as up:
        headrace = Command(up.bootstrap)
        headrace.ok("topic", "create", "orders", "--partitions", "3")
        headrace.ok("produce", "orders", "first", "second", "third")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-ec", commands],
            env=headrace.environment | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, ""), done
    lines = done.stdout.splitlines()
    assert {"first", "second", "third"} == set(lines[:3])
    assert "total lag 1" in lines
    assert "reset 3 partitions of billing" in lines
    assert lines[-1] == "deleted billing"
