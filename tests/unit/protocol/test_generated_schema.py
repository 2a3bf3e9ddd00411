import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_committed_schema_is_what_the_generator_writes(tmp_path: Path) -> None:
    generator = ROOT / "tools/generate_schema.py"
    subprocess.run([sys.executable, generator, tmp_path], check=True, capture_output=True)
    assert read_all(ROOT / "src/headrace/protocol/schema") == read_all(tmp_path)


def read_all(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(directory.glob("*.py"))}
