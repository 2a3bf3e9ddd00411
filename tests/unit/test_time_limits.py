"""A test that hangs is a failure with the stacks of all threads."""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

CONFIGURATION = Path(__file__).parents[2] / "pyproject.toml"


def run(tmp_path: Path, test: str, *limits: str) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "test_it.py"
    file.write_text(dedent(test))
    options = [argument for limit in limits for argument in ("-o", limit)]
    plugins = ["-p", "no:cacheprovider", "-p", "pytest_timeout"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-c", str(CONFIGURATION), *plugins, *options, str(file)],
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_test_that_waits_for_ever_fails_and_the_next_one_runs(tmp_path: Path) -> None:
    hangs = """
        import threading

        def wait_in_a_thread():
            threading.Event().wait()

        def test_that_hangs():
            threading.Thread(target=wait_in_a_thread, daemon=True).start()
            threading.Event().wait()

        def test_after_it():
            pass
    """
    ended = run(tmp_path, hangs, "timeout=1")
    assert ended.returncode == 1
    assert "1 failed, 1 passed" in ended.stdout
    assert "Timeout (>1.0s)" in ended.stdout
    assert "in wait_in_a_thread" in ended.stdout + ended.stderr
    assert "in test_that_hangs" in ended.stdout or "test_that_hangs():" in ended.stdout


def test_a_test_that_hangs_in_c_code_ends_the_process(tmp_path: Path) -> None:
    hangs = """
        def test_that_hangs():
            sum(range(10**15))
    """
    ended = run(tmp_path, hangs, "timeout=1", "faulthandler_timeout=2")
    assert ended.returncode == 1
    assert "in test_that_hangs" in ended.stderr
