"""The README's quick start, run as it is written."""

import os
import re
import subprocess
import sys
from pathlib import Path

from cli.command import TIMEOUT_S, Command
from headrace.testing.process import UpProcess

README = Path(__file__).parents[2] / "README.md"


def test_the_quick_start_works_as_written(tmp_path: Path) -> None:
    section = README.read_text("utf-8").partition("## Quick start")[2].partition("\n## ")[0]
    server, commands = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    (snippet,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert server.startswith("headrace up --data ")
    with UpProcess(tmp_path) as up:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = Command(up.bootstrap).environment | {"PATH": path}
        shell = _run(["bash", "-ec", commands], environment)
        assert "created orders: 3 partitions" in shell
        assert "3 records to orders" in shell
        assert 'alice {"item": "tea"}' in shell
        assert '"headers": [["from", "shell"]]' in shell
        printed = _run([sys.executable, "-c", snippet.replace("127.0.0.1:9092", up.bootstrap)], environment)
        assert "b'bob' b'coffee'" in printed


def _run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout
