"""What the README shows, run as it is written."""

import os
import re
import subprocess
import sys
from pathlib import Path

from cli.command import TIMEOUT_S, Command
from headrace.testing.process import UpProcess

README = Path(__file__).parents[2] / "README.md"


def test_the_quick_start_works_as_written(tmp_path: Path) -> None:
    server, commands = _blocks("Quick start", "sh")
    (snippet,) = _blocks("Quick start", "python")
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
        assert printed == "0 b'bob' coffee\n"


def test_the_test_passes_as_written(tmp_path: Path) -> None:
    (test,) = _blocks("In your tests", "python")
    (tmp_path / "test_orders.py").write_text(test)
    ran = _run([sys.executable, "-m", "pytest", "-q", str(tmp_path)], Command("").environment)
    assert "1 passed" in ran


def test_schemas_and_http_work_as_written(tmp_path: Path) -> None:
    (commands,) = _blocks("Schemas, HTTP and a console", "sh")
    (tmp_path / "order.avsc").write_text('{"type": "record", "name": "Order", "fields": []}')
    with UpProcess(tmp_path) as up:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = Command(up.bootstrap).environment | {"PATH": path}
        Command(up.bootstrap).ok("topic", "create", "orders")
        commands = commands.replace("http://127.0.0.1:8080", up.http).replace("curl", "curl -sS")
        shell = _run(["bash", "-ec", f"cd {tmp_path}\n{commands}"], environment)
    assert "orders-value" in shell
    assert '"offsets":[{"partition":0,"offset":0' in shell


def _blocks(section: str, language: str) -> list[str]:
    text = README.read_text("utf-8").partition(f"## {section}\n")[2].partition("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def _run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout
