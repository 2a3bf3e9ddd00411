"""What Spark writes down of a query, read without Spark."""

import json
from pathlib import Path

from headrace.pipeline.checkpoints import Checkpoint, read_checkpoint, read_query_id
from headrace.pipeline.plan import Ends
from headrace.protocol.ids import TopicPartition
from headrace.spark.position import Position

ZERO, ONE = TopicPartition("positions", 0), TopicPartition("positions", 1)
OFFSETS = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1794756566535,"conf":{}}\n'


def begun(path: Path, batch: int, *lines: str) -> None:
    (path / "offsets").mkdir(parents=True, exist_ok=True)
    (path / "offsets" / str(batch)).write_text(OFFSETS + "\n".join(lines))
    (path / "offsets" / f".{batch}.crc").write_bytes(b"crc")


def done(path: Path, batch: int) -> None:
    (path / "commits").mkdir(parents=True, exist_ok=True)
    (path / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')


def test_a_query_that_has_not_run_has_no_checkpoint(tmp_path: Path) -> None:
    assert read_checkpoint(tmp_path / "nothing") is None


def test_the_id_of_a_query_is_in_its_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id":"b7d0"}')

    assert read_query_id(tmp_path) == "b7d0"


def test_a_query_goes_on_after_the_last_batch_that_is_done(tmp_path: Path) -> None:
    for batch in (9, 10):
        begun(tmp_path, batch, json.dumps({"positions": {"0": batch, "1": 7}}))
        done(tmp_path, batch)
    assert read_checkpoint(tmp_path) == Checkpoint(batch=10, offsets={ZERO: 10, ONE: 7})


def test_a_batch_that_was_begun_and_not_finished_is_done_again(tmp_path: Path) -> None:
    begun(tmp_path, 0, '{"positions": {"0": 5}}')
    done(tmp_path, 0)
    begun(tmp_path, 1, '{"positions": {"0": 9}}')
    assert read_checkpoint(tmp_path) == Checkpoint(batch=0, offsets={ZERO: 5}, unfinished=True)


def test_a_first_batch_that_was_not_finished_has_no_offsets(tmp_path: Path) -> None:
    begun(tmp_path, 0, '{"positions": {"0": 5}}')
    assert read_checkpoint(tmp_path) == Checkpoint(unfinished=True)


def test_a_first_batch_that_was_not_finished_says_where_it_begins(tmp_path: Path) -> None:
    end = Position(
        offsets={ZERO: 5, ONE: 7}, topic_ids={"positions": "id"}, initial_offsets={ZERO: 2, ONE: 7}
    )
    begun(tmp_path, 0, json.dumps(end.to_json()), '{"drivers": {"0": 2}}')
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint == Checkpoint(offsets={ZERO: 2, ONE: 7}, unfinished=True)

    ends = Ends(earliest={ZERO: 0, ONE: 0}, latest={ZERO: 9, ONE: 9}, starting={ZERO: 9, ONE: 9})
    assert ends.lags(checkpoint) == {ZERO: 7, ONE: 2}


def test_offsets_of_all_sources_of_a_join_are_found(tmp_path: Path) -> None:
    begun(tmp_path, 0, '{"positions": {"0": 5}}', "-", '{"drivers": {"0": 2}}')
    done(tmp_path, 0)
    found = read_checkpoint(tmp_path)
    assert found is not None
    assert found.offsets == {ZERO: 5, TopicPartition("drivers", 0): 2}


def test_lag_counts_from_the_checkpoint_or_from_where_a_new_query_begins() -> None:
    ends = Ends(earliest={ZERO: 10, ONE: 0}, latest={ZERO: 100, ONE: 50}, starting={ZERO: 90, ONE: 50})
    assert ends.lags(None) == {ZERO: 10, ONE: 0}
    assert ends.lags(Checkpoint(unfinished=True)) == {ZERO: 10, ONE: 0}
    assert ends.lags(Checkpoint(batch=3, offsets={ZERO: 60, ONE: 50})) == {ZERO: 40, ONE: 0}


def test_lag_of_what_retention_has_taken_and_of_partitions_that_are_new() -> None:
    ends = Ends(earliest={ZERO: 10, ONE: 5}, latest={ZERO: 100, ONE: 50}, starting={ZERO: 10, ONE: 5})
    assert ends.lags(Checkpoint(batch=3, offsets={ZERO: 2})) == {ZERO: 90, ONE: 45}
