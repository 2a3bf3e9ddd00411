"""A pipeline whose state and checkpoints are on HDFS, and whose process is killed."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest
from deltalake import DeltaTable

from compat.kafka_tools.java import KafkaUnavailableError
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.state import State
from headrace.pipeline.storage.files import state_root
from headrace.pipeline.storage.hadoop_files import HadoopFiles
from headrace.pipeline.storage.versions import VersionedStore
from spark.hdfs.server import HdfsServer
from spark.killed_pipeline import KilledPipeline
from wire.confluent import make_topic
from wire.process import BrokerProcess

TOPIC: Final = "hdfs-numbers"
PIPELINE: Final = f"""
from headrace.pipeline import Delta, Json, Pipeline

numbers = Pipeline("numbers")
numbers.source("given", topic="{TOPIC}", decode=Json("n bigint"), bad_rows="fail")


@numbers.sink(Delta("table"), every="1 second")
def kept(given):
    return given.select("n")
"""

pytestmark = pytest.mark.long  # it starts HDFS


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    try:
        with HdfsServer(tmp_path_factory.mktemp("hdfs")) as running:
            yield running
    except KafkaUnavailableError as reason:
        pytest.skip(str(reason))


def test_of_two_processes_one_gets_the_lock(server: HdfsServer) -> None:
    def state() -> State:
        return State(state_root(f"{server.url}/locks"), "trucks")

    with state().running():
        assert state().pid == os.getpid()
        with pytest.raises(PipelineError, match="running already"):
            state().reset()
    assert state().pid is None
    assert state().reset() == []


def test_of_many_that_replace_a_version_one_succeeds(server: HdfsServer) -> None:
    store = VersionedStore(server.url, HadoopFiles(server.url))

    def count(_: int) -> int:
        succeeded = 0
        for _ in range(20):
            found = store.read("counter")
            assert found is not None
            if store.replace("counter", b"%d" % (int(found.content) + 1), found.version) is not None:
                succeeded += 1
        return succeeded

    store.write("counter", b"0")
    with ThreadPoolExecutor(4) as threads:
        succeeded = sum(threads.map(count, range(4)))
    found = store.read("counter")
    assert found is not None
    assert int(found.content) == succeeded


def test_storage_that_does_not_answer_is_an_error() -> None:
    with pytest.raises(PipelineError, match=r"hdfs://127\.0\.0\.1:1/state: "):
        State(state_root("hdfs://127.0.0.1:1/state"), "trucks").reset()


def test_a_pipeline_continues_after_a_kill_with_its_state_on_hdfs(
    broker: BrokerProcess, server: HdfsServer, tmp_path: Path
) -> None:
    (tmp_path / "numbers.py").write_text(PIPELINE)
    make_topic(broker.bootstrap, TOPIC, partitions=2)

    def rows() -> list[int]:
        if not (tmp_path / "table" / "_delta_log").is_dir():
            return []
        found: list[int] = DeltaTable(tmp_path / "table").to_pyarrow_table()["n"].to_pylist()
        return found

    pipeline = KilledPipeline(tmp_path, TOPIC, f"{server.url}/state", broker.bootstrap, rows)
    pipeline.run_until_killed()
    with pipeline.running_again():
        pass
    assert "deleted 1 checkpoint" in pipeline.headrace("reset", "numbers.py", "--yes")
