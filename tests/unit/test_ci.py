"""`.ci/run`, with a `make` that runs one test in place of all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

FAILS_ONCE = """
from pathlib import Path

def test_that_fails_once():
    once = Path(__file__).with_name("once")
    if not once.exists():
        once.touch()
        assert False
"""

HANGS_ONCE = FAILS_ONCE.replace("assert False", "__import__('threading').Event().wait()")
FAILS = "def test_that_fails(): assert False"
PASSES = "def test_that_passes(): pass"


def run(tmp_path: Path, test: str) -> tuple[int, list[str]]:
    """The exit status of `.ci/run`, and its last lines from the demo on."""
    file, make = tmp_path / "test_it.py", tmp_path / "make"
    file.write_text(test)
    pytest_ = f'"{sys.executable}" -m pytest -q -p no:cacheprovider -p pytest_timeout -p pytest_rerunfailures'
    make.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = demo ]; then echo the demo; exit; fi\n'
        'for variable in "$@"; do case "$variable" in RERUNS=*) reruns=${variable#RERUNS=};; esac; done\n'
        f'{pytest_} --timeout 5 $reruns -c {os.devnull} --rootdir "{tmp_path}" "{file}"\n'
    )
    make.chmod(0o755)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ended = subprocess.run(
        [REPOSITORY / ".ci" / "run"],
        env=clean | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    lines = ended.stdout.splitlines()
    return ended.returncode, lines[lines.index("the demo") :] if "the demo" in lines else lines


def test_a_test_that_fails_once_is_named_at_the_very_end(tmp_path: Path) -> None:
    status, said = run(tmp_path, FAILS_ONCE)
    assert status == 0
    assert said[0] == "the demo"
    assert said[-2].startswith("DEFECTS TO LOOK INTO: ")
    assert said[-1].startswith("RERUN ")
    assert said[-1].endswith("test_it.py::test_that_fails_once")


def test_nothing_follows_the_demo_if_no_test_has_failed(tmp_path: Path) -> None:
    assert run(tmp_path, PASSES) == (0, ["the demo"])


@pytest.mark.parametrize("test", [FAILS, HANGS_ONCE])
def test_a_test_that_fails_twice_or_hangs_fails_the_run(tmp_path: Path, test: str) -> None:
    status, said = run(tmp_path, test)
    assert status != 0
    assert "the demo" not in said
    assert ("DEFECTS TO LOOK INTO" in "\n".join(said)) == (test == FAILS)
