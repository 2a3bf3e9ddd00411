"""The previous version, for all tests here."""

from pathlib import Path

import pytest

from upgrade.previous import extract, why_not


@pytest.fixture(scope="session")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of the previous version, or the reason why the test is skipped."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    return extract(tmp_path_factory.mktemp("previous"))
