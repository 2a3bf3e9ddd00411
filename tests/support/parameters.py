"""Parameters of tests that only `make test-extended` and CI run."""

from collections.abc import Iterable
from typing import Any

import pytest


def extended(values: Iterable[Any]) -> list[Any]:
    """Return the parameters marked `extended`: they go into detail of what other parameters cover."""
    return [pytest.param(value, marks=pytest.mark.extended) for value in values]
