"""`headrace demo`, as the README's first command runs it, with a shorter drive."""

import json
import os
import subprocess
import sys
from typing import Final

import pytest

TIMEOUT_S: Final = 400


@pytest.mark.long
def test_the_demo_finds_every_record_in_the_table_once() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "demo", "--seconds", "2", "--json"],
        env=os.environ | {"COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done
    assert "none missing, none twice" in done.stderr
    assert "it is back and in sync" in done.stderr
    assert "Traceback" not in done.stderr
    found = json.loads(done.stdout)  # for machines, and nothing beside it
    assert found["rows"] == found["positions"] > 0
    assert (found["brokers"], found["crash"]["broker"] in {1, 2, 3}) == (3, True)
