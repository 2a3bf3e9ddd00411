"""docs/arrow.md: its blocks are one program and a few commands, and they run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

from cli.command import TIMEOUT_S, Command
from headrace.testing.process import UpProcess

PAGE = Path(__file__).parents[2] / "docs" / "arrow.md"


def run(up: UpProcess, *command: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = Command(up.bootstrap).environment | {"PATH": path, "HEADRACE_REGISTRY": up.http}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done
    return done.stdout


def test_the_page_does_what_it_says(up: UpProcess, tmp_path: Path) -> None:
    text = PAGE.read_text("utf-8").replace("127.0.0.1:9092", up.bootstrap)
    text = text.replace("/tmp/sales.parquet", str(tmp_path / "sales.parquet"))
    program = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    (commands,) = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)

    said = run(up, sys.executable, "-c", program)

    assert said.startswith("1000 ['key', 'value', 'topic', 'partition', 'offset', 'timestamp', ")
    assert "{'value': {'item': 'tea-" in said
    assert "│ tea-1" in said
    run(up, "bash", "-ec", commands)
    assert pq.read_table(tmp_path / "sales.parquet").num_rows == 1000
