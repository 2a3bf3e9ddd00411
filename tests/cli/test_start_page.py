"""docs/start.md, run from top to bottom as it is written. Its Spark read is run in tests/spark."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.command import TIMEOUT_S, Command
from headrace.testing.process import UpProcess

PAGE = Path(__file__).parents[2] / "docs" / "start.md"
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    """A broker that has nothing in it, as the reader's."""
    with UpProcess(tmp_path_factory.mktemp("start")) as process:
        yield process


def of(heading: str, up: UpProcess) -> list[tuple[str, str]]:
    """The blocks under a heading, with the addresses of our broker."""
    section = PAGE.read_text("utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    section = section.replace("http://127.0.0.1:8080", up.http).replace("127.0.0.1:9092", up.bootstrap)
    return BLOCK.findall(section)


def run(up: UpProcess, *command: str, directory: Path | None = None) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = Command(up.bootstrap).environment | {"PATH": path, "HEADRACE_REGISTRY": up.http}
    done = subprocess.run(
        command,
        env=environment,
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


@pytest.fixture(scope="module")
def begun(up: UpProcess) -> list[str]:
    """What the commands of the first section say; the groups read what they write."""
    *_, (_, commands) = of("A broker", up)
    return run(up, "bash", "-ec", commands).splitlines()


def test_the_page_has_the_sections_that_are_run_here() -> None:
    sections = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)

    assert {section.partition("\n")[0] for section in sections if BLOCK.search(section)} == {
        "A broker",
        "From Python",
        "A group",
        "A schema",
        "A test",
        "Spark",
    }


def test_the_broker_says_what_the_page_says(up: UpProcess, begun: list[str]) -> None:
    (_, server), (_, ready), _ = of("A broker", up)

    assert server.startswith("headrace up --data ")
    assert ready == f"ready bootstrap={up.bootstrap} http={up.http}\n"
    assert begun[0] == "created orders: 3 partitions, 1 replica each"
    assert sorted(begun[-2:]) == ["coffee", "tea"]


def test_python_prints_what_the_page_says(up: UpProcess) -> None:
    (_, program), (_, printed) = of("From Python", up)

    assert run(up, sys.executable, "-c", program) == printed


@pytest.mark.usefixtures("begun")
def test_a_group_is_done_the_second_time(up: UpProcess) -> None:
    ((_, commands),) = of("A group", up)

    first = run(up, "bash", "-ec", commands)
    assert first.startswith(("tea\ncoffee\n", "coffee\ntea\n"))
    assert "total lag 0" in first
    assert run(up, "bash", "-ec", commands).startswith("billing: ")


def test_schemas_do_what_the_page_says(up: UpProcess) -> None:
    (_, program), (_, printed), (_, commands) = of("A schema", up)

    assert run(up, sys.executable, "-c", program) == printed
    listed = run(up, "bash", "-ec", commands)
    assert "payments-value" in listed
    assert '"Payment"' in listed


def test_the_tests_of_the_page_pass(up: UpProcess, tmp_path: Path) -> None:
    ((_, tests),) = of("A test", up)
    (tmp_path / "test_orders.py").write_text(tests, "utf-8")

    said = run(up, sys.executable, "-m", "pytest", "-q", "test_orders.py", directory=tmp_path)

    assert f"{tests.count('def test_')} passed" in said
