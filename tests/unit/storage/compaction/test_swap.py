"""A finished compaction found on opening: by us, or by Kafka, at any point of its renaming."""

from pathlib import Path

import pytest

from headrace.storage.compaction.cleaner import plan_compaction, run_compaction
from headrace.storage.compaction.swap import announce
from headrace.storage.files import CLEANED, SWAP
from headrace.storage.log import Log
from support.logs import COMPACTED, open_test_log, pairs_in, put
from support.records import make_marker


def announced(directory: Path) -> tuple[Log, list[tuple[int, bytes | None, bytes | None]]]:
    """A log of three segments with a compacted one beside it, and what was there before."""
    log = open_test_log(directory, COMPACTED)
    put(log, (b"c", b"x"), transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)
    log.append_internal(make_marker(7, commit=False), leader_epoch=0)
    for value in (b"1", b"2"):
        put(log, (b"a", value), (b"b", value))
        log.roll()
    put(log, (b"c", b"1"))
    before = pairs_in(log)
    plan = plan_compaction(log, first_dirty_offset=0, up_to_offset=log.log_end_offset)
    assert plan is not None
    run_compaction(plan, max_keys=100, stop=lambda: False)
    announce(directory, 0)
    log.release()
    return log, before


def test_a_compacted_segment_without_its_final_name_is_put_in_place(tmp_path: Path) -> None:
    log, before = announced(tmp_path)
    aborted = log.aborted_transactions(0, 100)
    reopened = open_test_log(tmp_path, COMPACTED, recovery_point=100)

    assert pairs_in(reopened) == [entry for entry in before if entry[0] in {4, 5, 6}]
    assert reopened.aborted_transactions(0, 100) == aborted != []
    assert [segment.base_offset for segment in reopened.segments] == [0, 6]
    reopened.release()


@pytest.mark.parametrize("missing", [".index", ".timeindex"])
def test_an_index_that_is_missing_is_made_again_and_the_old_one_is_not_used(
    tmp_path: Path, missing: str
) -> None:
    _, before = announced(tmp_path)
    (tmp_path / f"00000000000000000000{missing}{SWAP}").unlink()
    reopened = open_test_log(tmp_path, COMPACTED, recovery_point=100)

    assert pairs_in(reopened) == [entry for entry in before if entry[0] in {4, 5, 6}]
    assert reopened.offset_for_timestamp(0) is not None
    reopened.release()


def test_indexes_without_their_log_are_no_finished_compaction(tmp_path: Path) -> None:
    _, before = announced(tmp_path)
    swapped = tmp_path / f"00000000000000000000.log{SWAP}"
    swapped.rename(swapped.with_suffix(CLEANED))
    reopened = open_test_log(tmp_path, COMPACTED)

    assert pairs_in(reopened) == before
    assert not [path for path in tmp_path.iterdir() if path.suffix in {SWAP, CLEANED}]
    reopened.release()


def test_the_index_of_aborted_transactions_goes_if_the_compacted_segment_has_none(tmp_path: Path) -> None:
    """A reader told of a transaction whose marker is gone would skip all that its producer wrote later."""
    announced(tmp_path)
    (tmp_path / f"00000000000000000000.txnindex{SWAP}").unlink()
    reopened = open_test_log(tmp_path, COMPACTED, recovery_point=100)

    assert reopened.aborted_transactions(0, 100) == []
    reopened.release()


def test_other_files_in_the_directory_do_not_matter(tmp_path: Path) -> None:
    announced(tmp_path)
    (tmp_path / "notes.log").write_text("not a segment")
    open_test_log(tmp_path, COMPACTED, recovery_point=100).release()
    assert (tmp_path / "notes.log").read_text() == "not a segment"
