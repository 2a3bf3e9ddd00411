"""docs/clients.md and docs/groups.md: their blocks are run as they are written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli.command import TIMEOUT_S, Command
from headrace.testing.process import UpProcess

pytestmark = pytest.mark.extended

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str, up: UpProcess) -> list[str]:
    text = (DOCS / page).read_text("utf-8")
    text = text.replace("http://127.0.0.1:8080", up.http).replace("127.0.0.1:9092", up.bootstrap)
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def run(up: UpProcess, *command: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        env=Command(up.bootstrap).environment | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


@pytest.mark.parametrize("number", range(3))
def test_every_client_gets_back_what_it_sent(up: UpProcess, number: int) -> None:
    programs = blocks("clients.md", "python", up)
    assert len(programs) == 3

    assert run(up, sys.executable, "-c", programs[number]) == "b'alice' b'tea'\n"


def test_http_will_do(up: UpProcess) -> None:
    (commands,) = blocks("clients.md", "sh", up)

    said = run(up, "bash", "-ec", commands)

    assert '"partition":0,"offset":0' in said
    assert said.endswith('{"item":"tea"}\n')


def test_groups_do_what_the_page_says(up: UpProcess) -> None:
    (program,) = blocks("groups.md", "python", up)
    look, move = blocks("groups.md", "sh", up)

    assert run(up, sys.executable, "-c", program) == "".join(f"b'{number}'\n" for number in range(6))
    said = run(up, "bash", "-ec", look)
    assert said.startswith("0\n1\n2\n3\n4\n5\n")
    assert "total lag 0" in said
    assert "reset 1 partition of desk" in run(up, "bash", "-ec", move)
