"""The directory that a pipeline keeps between two runs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.pipeline.errors import PipelineError
from headrace.pipeline.state import PipelineState

HOLDING = """
import sys, time
from pathlib import Path
from headrace.pipeline.state import PipelineState
with PipelineState(Path(sys.argv[1]), "trucks").running():
    print("holding", flush=True)
    time.sleep(60)
"""


def has_run(state: PipelineState, query: str) -> None:
    Path(str(state.checkpoint(query)), "offsets").mkdir(parents=True, exist_ok=True)
    (state.checkpoint(query) / "offsets" / "0").write_text('v1\n{}\n{"positions": {"0": 5}}')


def test_nobody_runs_a_pipeline_that_is_not_there(tmp_path: Path) -> None:
    state = PipelineState(tmp_path, "trucks")
    assert state.pid is None
    assert state.stop() is None
    assert state.since_ms is None
    assert not state.has_run("trucks.alerts")


def test_who_runs_it_is_known_while_it_runs(tmp_path: Path) -> None:
    with PipelineState(tmp_path, "trucks").running():
        assert PipelineState(tmp_path, "trucks").pid == os.getpid()
        assert PipelineState(tmp_path, "others").pid is None
    assert PipelineState(tmp_path, "trucks").pid is None


def test_a_second_run_is_refused_and_told_of_the_first(tmp_path: Path) -> None:
    with PipelineState(tmp_path, "trucks").running():
        with pytest.raises(PipelineError, match=f"trucks is running already, as process {os.getpid()}"):
            PipelineState(tmp_path, "trucks").reset()
        assert PipelineState(tmp_path, "trucks").pid == os.getpid()


def test_who_runs_it_may_say_so_again(tmp_path: Path) -> None:
    state = PipelineState(tmp_path, "trucks")
    with state.running():
        with state.running():
            pass
        assert PipelineState(tmp_path, "trucks").pid == os.getpid()


def test_a_process_that_was_killed_runs_it_no_more(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holding\n"
        assert PipelineState(tmp_path, "trucks").pid == process.pid
        process.kill()
        process.wait()
        assert PipelineState(tmp_path, "trucks").pid is None
    with PipelineState(tmp_path, "trucks").running():
        assert PipelineState(tmp_path, "trucks").pid == os.getpid()


def test_stop_asks_the_process_to_end(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert PipelineState(tmp_path, "trucks").stop() == process.pid
        assert process.wait(10) == -signal.SIGTERM


def test_reset_forgets_checkpoints_and_says_which(tmp_path: Path) -> None:
    state = PipelineState(tmp_path, "trucks")
    has_run(state, "trucks.alerts")
    has_run(state, "trucks.archive")
    assert state.has_run("trucks.alerts")

    assert state.reset() == ["trucks.alerts", "trucks.archive"]
    assert not state.has_run("trucks.alerts")
    assert state.reset() == []


def test_a_replay_forgets_checkpoints_and_remembers_where_to_begin_until_a_reset(tmp_path: Path) -> None:
    state = PipelineState(tmp_path, "trucks")
    has_run(state, "trucks.alerts")
    state.replay(1_767_225_600_000)
    assert not state.has_run("trucks.alerts")
    assert PipelineState(tmp_path, "trucks").since_ms == 1_767_225_600_000

    state.reset()
    assert state.since_ms is None


def test_where_queries_begin_is_kept_until_all_have_planned_a_batch(tmp_path: Path) -> None:
    state = PipelineState(tmp_path, "trucks")
    state.replay(1_767_225_600_000)
    state.store_initial_offsets("positions", {"offsets": {"positions": {"0": 5}}})
    state.store_initial_offsets("drivers", {"offsets": {"drivers": {"0": 2}}})
    has_run(state, "trucks.alerts")
    # As Spark does at the very start.
    Path(str(state.checkpoint("trucks.archive")), "offsets").mkdir(parents=True)

    assert not state.have_begun(["trucks.alerts", "trucks.archive"])
    again = PipelineState(tmp_path, "trucks")
    assert again.since_ms == 1_767_225_600_000
    assert again.initial_offsets.keys() == {"positions", "drivers"}

    has_run(state, "trucks.archive")
    assert state.have_begun(["trucks.alerts", "trucks.archive"])
    after = PipelineState(tmp_path, "trucks")
    assert after.since_ms is None
    assert after.initial_offsets == {}


def test_what_begins_anew_does_not_begin_at_offsets_of_before(tmp_path: Path) -> None:
    state = PipelineState(tmp_path, "trucks")
    for begin_anew in (state.reset, lambda: state.replay(1)):
        with state.running():
            state.store_initial_offsets("positions", {"offsets": {"positions": {"0": 5}}})
        begin_anew()
        assert state.initial_offsets == {}
