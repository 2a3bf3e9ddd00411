"""Every recipe of docs/testing.md does what it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.extended

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
QUIET = [f"-pno:{name}" for name in ("cacheprovider", "schemathesis", "hypothesispytest")]

pytest_plugins = ["pytester"]


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


SCRIPTS = [block for block in blocks("python") if "def test_" not in block]
TESTS = [block for block in blocks("python") if "def test_" in block and "pyspark" not in block]


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_of_the_page_runs(script: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, timeout=60, check=False, text=True
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_every_test_of_the_page_passes(pytester: pytest.Pytester) -> None:
    for number, block in enumerate(TESTS):
        pytester.makepyfile(**{f"test_block_{number}": block})
    written = sum(len(re.findall(r"^ *def test_", block, re.MULTILINE)) for block in TESTS)
    parametrized = sum(block.count("@pytest.mark.parametrize") for block in TESTS)  # each has several cases

    outcomes = pytester.runpytest_subprocess(*QUIET, "-Werror").parseoutcomes()

    assert set(outcomes) == {"passed"}, outcomes
    assert outcomes["passed"] > written + parametrized


def test_the_settings_of_the_page_are_taken(pytester: pytest.Pytester) -> None:
    (ini,) = blocks("ini")
    pytester.makeini(ini)
    pytester.makepyfile(
        """
        def test_settings(headrace):
            headrace.create_topic("orders")
            assert len(headrace.admin.describe_topic("orders").partitions) == 3
        """
    )

    pytester.runpytest_subprocess(*QUIET).assert_outcomes(passed=1)


def test_links_of_the_page_lead_somewhere() -> None:
    text = PAGE.read_text("utf-8")
    headings = {heading.lower().replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}

    for target in re.findall(r"\]\(([^)]+)\)", text):
        file, _, anchor = target.partition("#")
        assert not file or file.startswith("https://") or (PAGE.parent / file).exists(), target
        assert file or anchor in headings, target
