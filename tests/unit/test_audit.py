"""`make audit`: what is made of pip-audit's report, and of its failure."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

AUDIT = Path(__file__).parents[2] / "tools/audit.py"
SOUND = {"name": "a", "version": "1", "vulns": []}
VULNERABLE = {"name": "b", "version": "2", "vulns": [{"id": "CVE-1"}, {"id": "CVE-2"}]}
SKIPPED = {"name": "c", "skip_reason": "Dependency not found"}


@pytest.mark.parametrize(
    ("dependencies", "status", "said"),
    [
        ([SOUND, SOUND], 0, "no known vulnerability in 2 packages"),
        ([SOUND, VULNERABLE, SKIPPED], 1, "b 2: CVE-1, CVE-2"),
        ([SOUND, SKIPPED], 2, "1 of 2 packages were not audited, such as c"),
        ([], 2, "0 of 0 packages"),
    ],
)
def test_only_a_complete_audit_without_a_finding_succeeds(
    dependencies: list[Any], status: int, said: str
) -> None:
    found = audit(f"print({json.dumps(json.dumps({'dependencies': dependencies}))})")

    assert found.returncode == status
    assert said in found.stdout


def test_a_service_that_cannot_be_reached_is_a_line_and_no_traceback() -> None:
    found = audit("raise ConnectionError('the service does not answer')")

    assert found.returncode == 2
    assert found.stdout == (
        "audit: nothing was audited, because pip-audit failed: ConnectionError: the service does not answer\n"
    )
    assert found.stderr == ""


def audit(program: str) -> subprocess.CompletedProcess[str]:
    """Run the tool with a program in the place of pip-audit."""
    return subprocess.run(
        [sys.executable, str(AUDIT), sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
