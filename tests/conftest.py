"""What holds for all tests."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

from signals import handled_by_children

# A busy machine is no failure: nothing here is measured by the clock.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

# A Java that lives for a minute does not earn back what the optimising compiler costs: without it, tests of
# Spark need a third less CPU. Every Spark driver and every ZooKeeper that a test starts reads these.
QUICK_JAVA: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_JAVA)
os.environ.setdefault("SERVER_JVMFLAGS", QUICK_JAVA)

# Seconds after which a test hangs, in place of the 300 of pyproject.toml: many times what it takes on a quiet
# machine. The first test of these suites also waits for downloads, and for servers and sessions to start.
HERE: Final = Path(__file__).parent
LIMITS_S: Final = {
    "cluster": 900,
    "compat": 900,
    "coordination": 900,
    "frameworks": 900,
    "pages": 900,
    "simulation": 900,
    "spark": 900,
    "upgrade": 900,
}
LONG_S: Final = 1800
MOST_OF_A_FAILURE: Final = 20_000  # characters


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        suite = item.path.relative_to(HERE).parts[0] if item.path.is_relative_to(HERE) else ""
        limit_s = LONG_S if item.get_closest_marker("long") else LIMITS_S.get(suite)
        if limit_s is not None:
            item.add_marker(pytest.mark.timeout(limit_s))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print why a test failed that then passed: pytest-rerunfailures prints only its name."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"{report.nodeid} failed before it was run again")
        terminalreporter.line(report.longreprtext[-MOST_OF_A_FAILURE:])


@pytest.fixture(scope="session", autouse=True)
def _signals_of_children() -> Iterator[None]:
    with handled_by_children():
        yield
