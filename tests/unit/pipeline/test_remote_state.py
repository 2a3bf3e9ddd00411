"""The state of a pipeline on shared storage."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from headrace.pipeline.errors import LockLost, PipelineError
from headrace.pipeline.parquet_files import check_directory, claim_directory
from headrace.pipeline.state import PipelineState
from headrace.pipeline.status import _status
from headrace.pipeline.storage.files import checkpoint_url, is_remote, state_root
from headrace.pipeline.storage.lease import Lease
from headrace.pipeline.storage.object_store import ObjectStore, RemotePath

Open = Callable[[], PipelineState]


@pytest.fixture
def opened() -> Open:
    """Opens the state of one pipeline, as another process would."""
    url = "s3a://bucket/state"
    store = ObjectStore(url, MemoryStore())
    return lambda: PipelineState(RemotePath(url, store), "trucks")


def store_of(state: PipelineState) -> ObjectStore:
    assert isinstance(state.path, RemotePath)
    return state.path.store


def has_run(state: PipelineState, query: str) -> None:
    (state.checkpoint(query) / "offsets" / "0").write_text('v1\n{}\n{"positions": {"0": 5}}')


def test_one_process_runs_a_pipeline_and_others_know(opened: Open) -> None:
    assert opened().pid is None
    assert opened().stop() is None
    with opened().running():
        assert opened().pid == os.getpid()
        assert _status("trucks", [], opened().path.parent, 0).state == "running"
    assert opened().pid is None


def test_a_request_to_stop_reaches_the_process_through_the_storage(opened: Open) -> None:
    running = opened()
    with running.running():
        assert not running.must_stop()
        assert opened().stop() == os.getpid()
        running._next_look = 0
        assert running.must_stop()
    with running.running():  # the request was for the last run
        running._next_look = 0
        assert not running.must_stop()


def test_a_process_that_has_lost_its_lock_stops(opened: Open) -> None:
    running = opened()
    with running.running():
        assert isinstance(running._lock, Lease)
        running._lock._renewed_at -= 31
        with pytest.raises(LockLost, match="has lost the lock in s3a://bucket/state/trucks"):
            running.must_stop()


def test_storage_that_is_unavailable_for_a_moment_does_not_stop_a_run(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(*_: object) -> None:
        raise PipelineError("s3a://bucket: connection refused")

    running = opened()
    with running.running():
        with monkeypatch.context() as patched:
            patched.setattr(type(store_of(running)), "read", unavailable)
            assert not running.must_stop()
        opened().stop()
        running._next_look = 0
        assert running.must_stop()


def test_checkpoints_are_found_and_deleted(opened: Open) -> None:
    has_run(opened(), "trucks.alerts")
    has_run(opened(), "trucks.archive")
    assert opened().has_run("trucks.alerts")
    assert not opened().has_run("trucks.others")
    assert opened().reset() == ["trucks.alerts", "trucks.archive"]
    assert not opened().has_run("trucks.alerts")
    assert opened().reset() == []


def test_directories_that_hadoop_has_marked_are_not_files(opened: Open) -> None:
    (opened().path / "checkpoints" / "trucks.alerts").write_text("")
    assert opened().reset() == []
    assert not (opened().path / "checkpoints").is_dir()


def test_a_replay_lasts_until_all_queries_have_begun(opened: Open) -> None:
    opened().replay(1_767_225_600_000)
    opened().store_initial_offsets("positions", {"offsets": {"positions": {"0": 5}}})
    assert opened().since_ms == 1_767_225_600_000
    assert not opened().have_begun(["trucks.alerts"])
    has_run(opened(), "trucks.alerts")
    assert opened().have_begun(["trucks.alerts"])
    assert opened().since_ms is None
    assert opened().initial_offsets == {}


def test_a_directory_of_parquet_files_belongs_to_the_query_of_a_remote_checkpoint(
    opened: Open, tmp_path: Path
) -> None:
    claim_directory(tmp_path / "files", opened().checkpoint("trucks.files"))
    check_directory(tmp_path / "files", opened().checkpoint("trucks.files"))
    with pytest.raises(PipelineError, match="belongs to another query"):
        check_directory(tmp_path / "files", opened().checkpoint("trucks.others"))


def test_spark_finds_checkpoints_by_hadoops_names_of_file_systems() -> None:
    store = ObjectStore("s3://bucket", MemoryStore())
    assert checkpoint_url(RemotePath("s3://bucket", store) / "trucks") == "s3a://bucket/trucks"
    assert checkpoint_url(RemotePath("gs://bucket", store) / "trucks") == "gs://bucket/trucks"
    assert checkpoint_url(Path("/state/trucks")) == "file:///state/trucks"


@pytest.mark.parametrize(
    "url", ["s3a://bucket/state", "s3://b", "gs://b/x", "abfss://c@a.dfs.core.windows.net/x"]
)
def test_object_stores_are_remote(url: str) -> None:
    assert is_remote(url)


@pytest.mark.parametrize("text", ["state", "/state", "file:///state", "ftp://host/state", "s3a:/bucket"])
def test_everything_else_is_not(text: str) -> None:
    assert not is_remote(text)


@pytest.mark.parametrize("url", ["ftp://host/state", "hdfs://namenode:8020/state", "viewfs://state"])
def test_storage_that_has_no_conditional_writes_is_refused(url: str) -> None:
    with pytest.raises(PipelineError, match=rf"cannot be stored at {url}: .* object store \(s3a"):
        state_root(url)


def test_errors_of_storage_are_one_line_without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")  # nobody listens there
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wonderland")
    url = "s3a://bucket/state"
    from obstore.store import from_url  # noqa: PLC0415

    store = ObjectStore(url, from_url(url, retry_config={"max_retries": 0}))
    with pytest.raises(PipelineError, match=r"^s3a://bucket/state: ") as failure:
        store.read("trucks/running")
    assert "wonderland" not in str(failure.value)
    assert "\n" not in str(failure.value)
