"""docs/config.md, docs/apis.md and docs/cli.md are what `make docs` makes of the code as it is."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("docs")
    subprocess.run([sys.executable, str(ROOT / "tools/generate_docs.py"), str(directory)], check=True)
    return directory


@pytest.mark.parametrize("page", ["config.md", "apis.md", "cli.md"])
def test_a_generated_page_says_what_the_code_says(generated: Path, page: str) -> None:
    assert (ROOT / "docs" / page).read_text("utf-8") == (generated / page).read_text("utf-8"), (
        f"docs/{page} lags behind: run `make docs`"
    )
