"""A pipeline whose state, checkpoints and table are on an S3 server, and whose process is killed."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from compat.kafka_tools.java import KafkaUnavailableError
from compat.registry_clients.programs import ClientUnavailable
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.state import PipelineState
from headrace.pipeline.storage.object_store import ObjectStore, RemotePath
from spark.killed_pipeline import KilledPipeline
from spark.object_store.server import BUCKET, PASSWORD, USER, S3Server, s3a_jars
from spark.pipeline_process import HEADRACE
from wire.confluent import make_topic
from wire.process import BrokerProcess

TOPIC: Final = "object-store-numbers"
STATE: Final = f"s3a://{BUCKET}/state"
TABLE: Final = f"s3a://{BUCKET}/tables/numbers"
PIPELINE: Final = f"""
import os
from headrace.pipeline import Delta, Json, Pipeline

numbers = Pipeline("numbers")
numbers.source("given", topic="{TOPIC}", decode=Json("n bigint"), bad_rows="fail")
access = {{f"storage.{{name}}": value for name, value in os.environ.items() if name.startswith("AWS_")}}


@numbers.sink(Delta("{TABLE}", options=access), every="1 second")
def kept(given):
    return given.select("n")
"""

pytestmark = pytest.mark.long  # it compiles an S3 server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    try:
        with S3Server(tmp_path_factory.mktemp("s3")) as running:
            yield running
    except ClientUnavailable as reason:
        pytest.skip(str(reason))


def test_of_two_processes_one_gets_the_lock(server: S3Server) -> None:
    def state(name: str) -> PipelineState:
        root = f"s3a://{BUCKET}/locks"
        return PipelineState(RemotePath(root, ObjectStore(root, server.store("locks"))), name)

    with state("trucks").running():
        assert state("trucks").pid == os.getpid()
        with pytest.raises(PipelineError, match="running already"):
            state("trucks").reset()
        assert state("trucks").pid == os.getpid()
        assert state("others").pid is None
    assert state("trucks").pid is None
    assert state("trucks").reset() == []


def test_a_pipeline_continues_after_a_kill_with_everything_on_s3(
    broker: BrokerProcess, server: S3Server, tmp_path: Path
) -> None:
    (tmp_path / "numbers.py").write_text(PIPELINE)
    make_topic(broker.bootstrap, TOPIC, partitions=2)
    try:
        jars = ",".join(map(str, s3a_jars()))
    except KafkaUnavailableError as reason:
        pytest.skip(str(reason))

    def rows() -> list[int]:
        try:
            table = DeltaTable(TABLE, storage_options=server.variables)
        except TableNotFoundError:
            return []
        found: list[int] = table.to_pyarrow_table()["n"].to_pylist()
        return found

    pipeline = KilledPipeline(
        tmp_path,
        TOPIC,
        STATE,
        broker.bootstrap,
        rows,
        arguments=["--set", f"spark.jars={jars}"],
        variables=server.variables,
    )
    pipeline.run_until_killed()
    assert server.names("state/numbers/running") == ["state/numbers/running"]  # nobody has released it
    with pipeline.running_again() as second:
        refused = subprocess.run(
            [HEADRACE, "pipeline", "reset", "numbers.py", "--state", STATE, "--yes"],
            cwd=tmp_path,
            env={**os.environ, **server.variables, "HEADRACE_BOOTSTRAP": broker.bootstrap},
            capture_output=True,
            text=True,
            check=False,
        )
        assert f"is running, as process {second.process.pid}" in refused.stderr

    assert server.names("state/numbers/running") == []
    assert server.names("state/numbers/checkpoints/numbers.kept/commits")
    assert USER not in second.output
    assert PASSWORD not in second.output
    assert PASSWORD not in (tmp_path / ".headrace" / "numbers" / "spark.log").read_text()
    assert "deleted 1 checkpoint" in pipeline.headrace("reset", "numbers.py", "--yes")
    assert server.names("state/numbers/checkpoints") == []
