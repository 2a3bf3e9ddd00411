import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.usefixtures("kafka_clients")
def test_the_committed_schema_is_what_the_generator_writes(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, ROOT / "tools/generate_schema.py", tmp_path],
        check=True,
        capture_output=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests")},
    )
    assert read_all(ROOT / "src/headrace/protocol/schema") == read_all(tmp_path)


def read_all(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(directory.glob("*.py"))}
