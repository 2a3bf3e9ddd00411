"""The pytest plugin, as somebody's own tests see it."""

import pytest

from headrace.testing import Broker, Cluster

pytest_plugins = ["pytester"]


@pytest.fixture
def run(pytester: pytest.Pytester) -> "Run":
    return Run(pytester)


class Run:
    """Runs a file of tests with the plugin that pytest finds by itself."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester = pytester

    def __call__(self, tests: str, *arguments: str, ini: str = "") -> pytest.RunResult:
        self._pytester.makeini(f"[pytest]\n{ini}")
        self._pytester.makepyfile(tests)
        others = [f"-pno:{name}" for name in ("cacheprovider", "schemathesis", "hypothesispytest")]
        return self._pytester.runpytest_subprocess(*others, *arguments)


# -- here and now ----------------------------------------------------------------------------------


def test_a_broker_is_an_argument(headrace: Broker) -> None:
    headrace.produce("orders", "tea")

    assert [record.value for record in headrace.records("orders")] == [b"tea"]


def test_it_is_another_one_for_every_test(headrace: Broker) -> None:
    assert [topic.name for topic in headrace.admin.list_topics()] == []


@pytest.mark.headrace(settings={"num.partitions": 4}, topics={"orders": 6})
class TestMarkers:
    def test_a_marker_says_what_it_is_like(self, headrace: Broker) -> None:
        headrace.produce("prices", "1")

        partitions = {topic.name: topic.partitions for topic in headrace.admin.list_topics()}
        assert partitions == {"orders": 6, "prices": 4}

    @pytest.mark.headrace(settings={"auto.create.topics.enable": False}, topics={"prices": 1})
    def test_the_nearest_marker_wins_and_settings_add_up(self, headrace: Broker) -> None:
        headrace.create_topic("more")

        partitions = {topic.name: topic.partitions for topic in headrace.admin.list_topics()}
        assert partitions == {"prices": 1, "more": 4}


@pytest.mark.headrace(topics=["orders", "prices"])
def test_a_marker_may_name_topics_only(headrace: Broker) -> None:
    assert [topic.name for topic in headrace.admin.list_topics()] == ["orders", "prices"]


@pytest.mark.headrace(brokers=2, topics=["orders"])
def test_a_cluster_s_marker_may_name_topics_only(headrace_cluster: Cluster) -> None:
    assert [topic.replicas for topic in headrace_cluster.admin.list_topics()] == [2]


@pytest.mark.headrace(brokers=2, topics={"orders": 1})
def test_a_cluster_has_as_many_brokers_as_its_marker_says(headrace_cluster: Cluster) -> None:
    assert headrace_cluster.brokers == [1, 2]


@pytest.mark.headrace(process=True)
def test_it_may_be_a_process(headrace: Broker) -> None:
    assert headrace.pid


# -- in a run of its own ---------------------------------------------------------------------------


def test_a_run_without_brokers_does_not_pay_for_the_plugin(run: "Run") -> None:
    result = run(
        """
        import sys

        def test_nothing_of_it_is_imported():
            ours = {name for name in sys.modules if name.startswith(("headrace", "confluent_kafka", "kazoo"))}
            assert ours == {"headrace", "headrace.testing", "headrace.testing.plugin"}

        def test_nothing_of_it_is_rewritten():
            from headrace.testing import Broker

            assert "Rewriting" not in type(sys.modules["headrace.broker.server"].__loader__).__name__
        """
    )

    result.assert_outcomes(passed=2)


def test_a_broker_for_the_session_is_shared(run: "Run") -> None:
    result = run(
        """
        def test_one(headrace_session):
            headrace_session.produce("orders", "tea")

        def test_other(headrace_session):
            assert len(headrace_session.records("orders")) == 1
        """
    )

    result.assert_outcomes(passed=2)


def test_the_report_of_a_failure_has_the_warnings_of_the_broker_and_of_this_test_only(run: "Run") -> None:
    result = run(
        """
        import socket

        def spoil(broker, size):
            host, port = broker.bootstrap.split(":")
            with socket.create_connection((host, int(port))) as client:
                client.sendall(size.to_bytes(4, "big"))
                assert client.recv(1) == b""

        def test_passes(headrace_session):
            spoil(headrace_session, 2_000_000_001)

        def test_fails(headrace_session, headrace):
            spoil(headrace_session, 2_000_000_002)
            assert not "as it should be"
        """
    )

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*- Log of headrace_session -*", "*WARNING closing the connection of *2*000*000*002*"]
    )
    result.stdout.no_fnmatch_line("*000*001*")
    result.stdout.no_fnmatch_line("*- Log of headrace -*")
    result.stdout.no_fnmatch_line("*Captured log*")


def test_settings_for_the_whole_run_stand_in_the_configuration(run: "Run") -> None:
    tests = """
        import pytest

        def partitions(broker):
            broker.produce("orders", "tea")
            return broker.admin.list_topics()[0].partitions

        def test_of_the_run(headrace):
            assert partitions(headrace) == 5

        def test_of_the_session(headrace_session):
            assert partitions(headrace_session) == 5

        @pytest.mark.headrace(settings={"num.partitions": 2})
        def test_of_its_own(headrace):
            assert partitions(headrace) == 2
        """

    run(tests, ini="headrace_settings =\n  num.partitions = 5").assert_outcomes(passed=3)
    bad = run(tests, ini="headrace_settings = num.partitions")
    bad.assert_outcomes(errors=3)
    bad.stdout.fnmatch_lines(["*headrace_settings: expected NAME=VALUE, not 'num.partitions'*"])


def test_a_marker_that_makes_no_sense_is_refused_with_a_sentence(run: "Run") -> None:
    result = run(
        """
        import pytest

        @pytest.mark.headrace(partitions=3)
        def test_unknown(headrace): ...

        @pytest.mark.headrace({"num.partitions": 3})
        def test_not_by_name(headrace): ...

        @pytest.mark.headrace(brokers=3)
        def test_several_in_one(headrace): ...
        """,
        "--strict-markers",
    )

    result.assert_outcomes(errors=3)
    result.stdout.fnmatch_lines(
        [
            "*takes settings, topics, process, brokers, secure by name, not partitions",
            "*takes settings, topics, process, brokers, secure by name, not {'num.partitions': 3}",
            "*headrace is one broker: use headrace_cluster with brokers=…",
        ]
    )


def test_workers_of_xdist_have_brokers_of_their_own(run: "Run") -> None:
    result = run(
        """
        import pytest

        @pytest.mark.parametrize("number", range(8))
        def test_alone(headrace, number):
            headrace.produce("orders", str(number))
            assert [record.value for record in headrace.records("orders")] == [b"%d" % number]
        """,
        "-n2",
    )

    result.assert_outcomes(passed=8)


def test_a_broker_serves_tests_that_are_coroutines(run: "Run") -> None:
    result = run(
        """
        import pytest
        from aiokafka import AIOKafkaProducer

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        @pytest.mark.anyio
        async def test_orders(headrace):
            async with AIOKafkaProducer(bootstrap_servers=headrace.bootstrap) as producer:
                await producer.send_and_wait("orders", b"tea")
            assert [record.value for record in headrace.records("orders")] == [b"tea"]
        """
    )

    result.assert_outcomes(passed=1)
