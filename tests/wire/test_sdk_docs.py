"""docs/sdk.md: its blocks are one program, and it runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from wire.process import BrokerProcess

pytestmark = pytest.mark.extended

PAGE = Path(__file__).parents[2] / "docs" / "sdk.md"


def test_the_page_runs_as_it_is_written(own_broker: BrokerProcess) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(blocks) > 10
    program = "\n".join(blocks).replace("127.0.0.1:9092", own_broker.bootstrap)
    program = program.replace("http://127.0.0.1:8080", own_broker.http)
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    for expected in (
        "b'alice' tea",
        "Counts(sent=10000, acknowledged=10000, failed=0, waiting=0)",
        "Delivered(topic='orders'",
        "[{'item': 'tea', 'count': 2}]",
        "b'not JSON'",
        "now mine [",
        "{'retention.ms': '86400000'}",
    ):
        assert expected in done.stdout, done.stdout
