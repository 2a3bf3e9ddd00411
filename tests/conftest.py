"""What holds for all tests."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from signals import handled_by_children

# A busy machine is no failure: nothing here is measured by the clock.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


@pytest.fixture(scope="session", autouse=True)
def _signals_of_children() -> Iterator[None]:
    with handled_by_children():
        yield
