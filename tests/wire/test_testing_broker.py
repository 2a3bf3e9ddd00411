"""The broker of a test: how it comes, what it can do, and that nothing of it stays."""

import logging
import os
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from headrace.broker.settings.setting import InvalidSetting
from headrace.client.errors import ClientError, NoSuchTopic, TopicExists, Unreachable
from headrace.protocol.schema.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.protocol.schema.metadata import MetadataRequest
from headrace.testing import Broker
from headrace.testing.brokers import Topics
from headrace.testing.client import NotYet, until
from wire.leftovers import in_use
from wire.raw import RawClient

ANYTHING = MetadataRequest(topics=[])
METADATA_VERSION = 12


@pytest.fixture(scope="module")
def served() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go, for this test alone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def values(broker: Broker, topic: str) -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


def refuses(address: str) -> None:
    """NotYet while somebody listens there."""
    try:
        RawClient(address).close()
    except ConnectionRefusedError:
        return
    raise NotYet(f"{address} is there")


# -- life ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("process", [False, True])
def test_a_broker_leaves_no_thread_no_file_and_nothing_open(temporary: Path, *, process: bool) -> None:
    with Broker() as first:
        first.produce("warm", "up")  # libraries have things that they keep
    before = in_use()

    with Broker(process=process, topics={"orders": 2}) as broker:
        broker.produce("orders", "tea")
        assert broker.admin.describe_topic("orders").partitions
        pid = broker.pid if process else None
        assert list(temporary.iterdir())

    assert in_use() == before
    assert list(temporary.iterdir()) == []
    assert pid is None or not Path(f"/proc/{pid}").exists()


def test_a_start_that_fails_leaves_nothing_either(temporary: Path) -> None:
    before = in_use()

    with pytest.raises(InvalidSetting, match=r"num\.partitions"):
        Broker({"num.partitions": "none"}).start()
    with pytest.raises(InvalidSetting, match=r"num\.partitions"):
        Broker({"num.partitions": "none"}, process=True).start()
    with pytest.raises(ClientError, match=r"bad/name"):
        Broker(topics={"bad/name": 1}).start()

    assert in_use() == before
    assert list(temporary.iterdir()) == []


def test_a_broker_can_be_started_and_stopped_without_a_block_and_again() -> None:
    broker = Broker()
    with pytest.raises(RuntimeError, match="not running"):
        _ = broker.bootstrap

    for _ in range(2):
        broker.start()
        broker.produce("orders", "tea")
        assert values(broker, "orders") == [b"tea"]
        broker.stop()
        broker.stop()


def test_several_brokers_at_a_time_know_nothing_of_each_other() -> None:
    with Broker() as one, Broker() as other:
        one.produce("orders", "tea")

        assert one.bootstrap != other.bootstrap
        with pytest.raises(NoSuchTopic):
            other.records("orders")


def test_brokers_come_and_go_in_parallel_threads() -> None:
    def live(number: int) -> list[bytes | None]:
        with Broker() as broker:
            broker.produce("orders", str(number))
            return values(broker, "orders")

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(live, range(12))) == [[b"%d" % number] for number in range(12)]


def test_a_process_outlives_the_thread_that_has_started_it() -> None:
    broker = Broker(process=True)
    starting = threading.Thread(target=broker.start)
    starting.start()
    starting.join()
    try:
        broker.produce("orders", "tea")
        assert values(broker, "orders") == [b"tea"]
    finally:
        broker.stop()


def test_a_script_that_forgets_to_stop_ends_all_the_same(tmp_path: Path) -> None:
    script = "from headrace.testing import Broker; b = Broker(process={}); b.start(); print(b.bootstrap)"

    for process in (False, True):
        ended = subprocess.run(
            [sys.executable, "-c", script.format(process)],
            env=os.environ | {"TMPDIR": str(tmp_path)},
            capture_output=True,
            timeout=60,
            check=True,
        )

        assert ended.stderr.decode() == ""
        assert list(tmp_path.iterdir()) == []
        address = ended.stdout.decode().strip()
        until("the end of the broker", partial(refuses, address), 10)


def test_a_forked_child_does_not_stop_its_parent_s_broker(served: Broker) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which the child does not use
        child = os.fork()
    if child == 0:
        try:
            served.stop()
        finally:
            os._exit(0)
    os.waitpid(child, 0)

    with RawClient(served.bootstrap) as client:
        assert client.ask(ANYTHING, METADATA_VERSION).brokers


# -- dying and coming back -------------------------------------------------------------------------


@pytest.mark.parametrize("process", [False, True])
def test_a_killed_broker_comes_back_with_its_port_and_its_data(*, process: bool) -> None:
    with Broker(process=process) as broker:
        broker.produce("orders", "tea", "coffee")
        address = broker.bootstrap

        broker.kill()
        refuses(address)
        broker.kill()
        broker.restart()

        assert broker.bootstrap == address
        assert values(broker, "orders") == [b"tea", b"coffee"]


def test_a_running_broker_can_be_restarted() -> None:
    with Broker() as broker:
        broker.produce("orders", "tea")
        broker.restart()
        broker.produce("orders", "coffee")

        assert values(broker, "orders") == [b"tea", b"coffee"]


def test_data_in_a_directory_of_one_s_own_stay(tmp_path: Path) -> None:
    with Broker(data=tmp_path / "kept") as broker:
        broker.produce("orders", "tea")
    with Broker(data=tmp_path / "kept") as broker:
        assert values(broker, "orders") == [b"tea"]


def test_a_process_can_be_paused_and_a_thread_cannot() -> None:
    with Broker(process=True) as broker, RawClient(broker.bootstrap) as client:
        broker.pause()
        client.send(ANYTHING, METADATA_VERSION)
        assert not client.has_something_to_read(within_s=0.2)
        broker.resume()
        assert client.receive(ANYTHING, METADATA_VERSION).brokers
        with pytest.raises(RuntimeError, match="leave out process=True"):
            _ = broker.faults
    with Broker() as broker, pytest.raises(RuntimeError, match="use process=True"):
        broker.pause()


# -- what it is asked for --------------------------------------------------------------------------


def test_topics_have_the_partitions_and_settings_that_were_asked_for() -> None:
    topics: Topics = {"orders": 3, "prices": {"partitions": 2, "configs": {"cleanup.policy": "compact"}}}
    with Broker(topics=topics) as broker:
        broker.create_topic("more", configs={"retention.ms": 1000})
        found = {name: broker.admin.describe_topic(name) for name in (*topics, "more")}

        with pytest.raises(TopicExists):
            broker.create_topic("orders")

    assert {name: len(topic.partitions) for name, topic in found.items()} == {
        "orders": 3,
        "prices": 2,
        "more": 1,
    }
    assert found["prices"].configs == {"cleanup.policy": "compact"}
    assert found["more"].configs == {"retention.ms": "1000"}


@pytest.mark.parametrize("names", [["tea", "coffee"], ("tea", "coffee"), {"tea", "coffee"}])
def test_topics_may_be_only_names_and_have_one_partition_each(names: Topics) -> None:
    with Broker(settings={"num.partitions": 5}, topics=names) as broker:
        found = {topic.name: topic.partitions for topic in broker.admin.list_topics()}
    assert found == {"coffee": 1, "tea": 1}


def test_one_name_where_several_are_expected_is_refused_in_a_sentence() -> None:
    with pytest.raises(TypeError, match="topics='orders': expected a list of names, or partitions by name"):
        Broker(topics="orders")


def test_a_start_returns_the_broker() -> None:
    broker = Broker()
    try:
        assert broker.start() is broker
    finally:
        broker.stop()


def test_records_are_whole_and_in_order(served: Broker) -> None:
    served.create_topic("whole", partitions=2)
    served.produce("whole", "first", None, key="bob", headers=[("from", b"test")], partition=1)
    served.produce("whole", b"second", partition=0)

    found = served.records("whole")

    assert [(each.partition, each.offset, each.key, each.value) for each in found] == [
        (0, 0, None, b"second"),
        (1, 0, b"bob", b"first"),
        (1, 1, b"bob", None),
    ]
    assert list(found[1].headers) == [("from", b"test")]
    assert {each.topic for each in found} == {"whole"}


def test_records_that_were_deleted_are_not_there(served: Broker) -> None:
    served.create_topic("cut")
    served.produce("cut", *map(str, range(10)))
    before = DeleteRecordsPartition(partition_index=0, offset=4)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name="cut", partitions=[before])], timeout_ms=1000
    )

    with RawClient(served.bootstrap) as client:
        client.ask(request, 2)

    assert values(served, "cut") == [b"%d" % number for number in range(4, 10)]


def test_records_can_be_waited_for_also_before_there_is_a_topic(served: Broker) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(served.records, "awaited", count=2)
        served.produce("awaited", "tea")
        served.produce("awaited", "coffee")

        assert [record.value for record in waiting.result()] == [b"tea", b"coffee"]
    with pytest.raises(TimeoutError, match=r"3 records of awaited: not within 0.1 s: there are 2"):
        served.records("awaited", count=3, timeout_s=0.1)


def test_a_setting_that_is_not_the_test_s_to_decide_is_refused() -> None:
    with pytest.raises(ValueError, match=r"log\.dirs is decided by the fixture"):
        Broker({"log.dirs": "elsewhere"})


def test_a_setting_may_be_a_boolean() -> None:
    with Broker({"auto.create.topics.enable": False}) as broker, pytest.raises(NoSuchTopic):
        broker.produce("unknown", "tea")


# -- its log ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("process", [False, True])
def test_what_a_broker_complains_of_is_in_its_log_and_nowhere_else(
    caplog: pytest.LogCaptureFixture, *, process: bool
) -> None:
    caplog.set_level(logging.DEBUG)
    with Broker(process=process) as broker, Broker() as other:
        with RawClient(broker.bootstrap) as client:
            client.socket.sendall(b"\x7f\xff\xff\xff")  # the length of a request
            assert client.is_closed_by_the_broker()
        logging.getLogger("headrace.client").warning("not the broker's")

        assert ["closing the connection" in line for line in broker.log] == [True]
        assert other.log == []

    assert [record.getMessage() for record in caplog.records if record.name != "asyncio"] == [
        "not the broker's"
    ]


def test_a_broker_that_is_gone_cannot_be_asked() -> None:
    with Broker() as broker:
        broker.kill()
        with pytest.raises((Unreachable, TimeoutError)):
            broker.records("orders", timeout_s=0)
