"""The pytest plugin: a broker, or a cluster, is an argument of a test.

    def test_orders(headrace):
        Producer({"bootstrap.servers": headrace.bootstrap})

    @pytest.mark.headrace(settings={"auto.create.topics.enable": False}, topics={"orders": 6})
    def test_more_orders(headrace): ...

pytest loads this in every run on a machine that has Headrace: whatever it needs is imported by the fixtures.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from headrace.testing.broker import Broker
    from headrace.testing.cluster import Cluster
    from headrace.testing.served import Served

_MARKER: Final = "headrace"
_INI: Final = "headrace_settings"
_OPTIONS: Final = ("settings", "topics", "process", "brokers")
_SEEN = pytest.StashKey[dict[str, Mapping[int, int]]]()


def _leave_asserts_alone() -> None:
    """Keep pytest from rewriting the asserts of our whole package, as it does with those that have plugins.

    A broker's are not a test's; to rewrite them takes longer than to start it, and they get slower.
    """
    for finder in sys.meta_path:
        # Not pytest's promise; should it go, everything is slower, and nothing wrong.
        marked = getattr(finder, "_must_rewrite", None)
        if isinstance(marked, set):
            marked.discard("headrace")


_leave_asserts_alone()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Settings for every broker of a run."""
    parser.addini(
        _INI, "Settings of the headrace fixtures' brokers, one NAME=VALUE on each line.", type="linelist"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(settings={{}}, topics={{}}, brokers=3, process=False): "
        "what the broker or cluster of the headrace fixtures is like",
    )


@pytest.fixture
def headrace(request: pytest.FixtureRequest) -> "Iterator[Broker]":
    """A broker for this test alone: `headrace.bootstrap`, `.create_topic`, `.records`, `.faults`."""
    from headrace.testing.broker import Broker  # noqa: PLC0415

    options = _options(request)
    if "brokers" in options:
        raise pytest.UsageError("headrace is one broker: use headrace_cluster with brokers=…")
    with Broker(**options) as broker:
        yield broker


@pytest.fixture
def headrace_cluster(request: pytest.FixtureRequest) -> "Iterator[Cluster]":
    """Three brokers for this test alone, or as many as its marker says."""
    from headrace.testing.cluster import Cluster  # noqa: PLC0415

    with Cluster(**_options(request)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def headrace_session(request: pytest.FixtureRequest) -> "Iterator[Broker]":
    """A broker that all tests of the run share: let each have topics and groups of its own."""
    from headrace.testing.broker import Broker  # noqa: PLC0415

    with Broker(settings=_settings(request.config)) as broker:
        yield broker


def _options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the markers of a test say, the nearest first, on top of the settings of the run."""
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


# -- what brokers complained of, in the report of a test that fails --------------------------------


def _brokers(item: pytest.Item) -> "Mapping[str, Served]":
    """The arguments of a test that are brokers, from our fixtures or somebody else's."""
    if (module := sys.modules.get("headrace.testing.served")) is None:
        return {}
    arguments: dict[str, Any] = getattr(item, "funcargs", {})
    return {name: each for name, each in arguments.items() if isinstance(each, module.Served)}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Remember what a broker that tests share has said before this one."""
    item.stash[_SEEN] = {name: broker.log_seen for name, broker in _brokers(item).items()}
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Show it what they have said since, if it has failed."""
    report: pytest.TestReport = yield  # type: ignore[assignment]
    if report.failed and report.when == "call":
        for name, broker in _brokers(item).items():
            said = broker.log_since(item.stash.get(_SEEN, {}).get(name, {}))
            if said:
                report.sections.append((f"Log of {name}", "\n".join(said)))
    return report  # type: ignore[return-value]
