"""The pytest plugin: a broker, or a cluster, is an argument of a test.

    def test_orders(headrace):
        Producer({"bootstrap.servers": headrace.bootstrap})

    @pytest.mark.headrace(settings={"auto.create.topics.enable": False}, topics={"orders": 6})
    def test_more_orders(headrace): ...

pytest loads this plugin in every run on a machine that has Headrace: the fixtures import what they need.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from headrace.testing.brokers import Broker, RunningBrokers
    from headrace.testing.cluster import Cluster

_MARKER: Final = "headrace"
_INI: Final = "headrace_settings"
_OPTIONS: Final = ("settings", "topics", "process", "brokers", "secure")
_SEEN = pytest.StashKey[dict[str, Mapping[int, int]]]()


# Keep pytest from rewriting the asserts of our whole package, as it does for packages with plugins: that
# takes longer than starting a broker. The attribute is not public: without
# it everything is only slower.
for _finder in sys.meta_path:
    if isinstance(_marked := getattr(_finder, "_must_rewrite", None), set):
        _marked.discard("headrace")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add an ini option for the settings of every broker of a run."""
    parser.addini(
        _INI, "Settings of the headrace fixtures' brokers, one NAME=VALUE on each line.", type="linelist"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(settings={{}}, topics={{}}, brokers=3, process=False, secure=False): "
        "what the broker or cluster of the headrace fixtures is like",
    )


@pytest.fixture
def headrace(request: pytest.FixtureRequest) -> "Iterator[Broker]":
    """A broker for this test alone: `headrace.bootstrap`, `.create_topic`, `.records`, `.faults`."""
    from headrace.testing.brokers import Broker  # noqa: PLC0415

    options = _options(request)
    if "brokers" in options:
        raise pytest.UsageError("headrace is one broker: use headrace_cluster with brokers=…")
    with Broker(**options) as broker:
        yield broker


@pytest.fixture
def headrace_cluster(request: pytest.FixtureRequest) -> "Iterator[Cluster]":
    """Three brokers, or as many as the marker says, for this test alone."""
    from headrace.testing.cluster import Cluster  # noqa: PLC0415

    with Cluster(**_options(request)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def headrace_session(request: pytest.FixtureRequest) -> "Iterator[Broker]":
    """A broker that all tests of the run share: use separate topics and groups in each test."""
    from headrace.testing.brokers import Broker  # noqa: PLC0415

    with Broker(settings=_settings(request.config)) as broker:
        yield broker


def _options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the options of a test's markers, the nearest first, on top of the settings of the run."""
    options: dict[str, Any] = {}
    settings: dict[str, object] = {}
    for marker in reversed(list(request.node.iter_markers(_MARKER))):
        unknown = [name for name in marker.kwargs if name not in _OPTIONS]
        if marker.args or unknown:
            raise pytest.UsageError(
                f"pytest.mark.{_MARKER} takes {', '.join(_OPTIONS)} by name, "
                f"not {', '.join([*map(repr, marker.args), *unknown])}"
            )
        options |= marker.kwargs
        settings |= marker.kwargs.get("settings") or {}
    return options | {"settings": _settings(request.config) | settings}


def _settings(config: pytest.Config) -> dict[str, object]:
    settings: dict[str, object] = {}
    for line in config.getini(_INI):
        name, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"{_INI}: expected NAME=VALUE, not {line!r}")
        settings[name.strip()] = value.strip()
    return settings


def _brokers(item: pytest.Item) -> "Mapping[str, RunningBrokers]":
    """Return the arguments of a test that are brokers, from our fixtures or from others."""
    if (module := sys.modules.get("headrace.testing.brokers")) is None:
        return {}
    arguments: dict[str, Any] = getattr(item, "funcargs", {})
    return {name: each for name, each in arguments.items() if isinstance(each, module.RunningBrokers)}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Remember how long the log of a shared broker is before this test."""
    item.stash[_SEEN] = {name: broker.log_seen for name, broker in _brokers(item).items()}
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Show the log lines since then if the test has failed."""
    report: pytest.TestReport = yield  # type: ignore[assignment]
    if report.failed and report.when == "call":
        for name, broker in _brokers(item).items():
            lines = broker.log_since(item.stash.get(_SEEN, {}).get(name, {}))
            if lines:
                report.sections.append((f"Log of {name}", "\n".join(lines)))
    return report  # type: ignore[return-value]
