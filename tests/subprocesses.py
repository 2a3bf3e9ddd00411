"""Python processes that tests start: they import the package of the tests, and the modules of the tests."""

import os
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parent


def environment_with_tests() -> dict[str, str]:
    """Return the environment with the directory of the tests first on PYTHONPATH."""
    given = os.environ.get("PYTHONPATH")
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *([given] if given else [])])}
