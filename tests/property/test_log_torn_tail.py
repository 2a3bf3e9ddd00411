"""The log cut, flipped and overwritten at every byte: what recovery keeps, what it reports, what it mends."""

import random
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from headrace.protocol.compression import Compression
from headrace.storage.errors import CorruptLog
from headrace.storage.log import Log
from samples.partition import APPENDS, CONFIG, INDEXES, crashed, facts, written
from support.logs import files_in, memory_directory, open_test_log, read_all
from support.records import TIMESTAMP

# Batches have many lengths: one in five bytes is each byte of a header, and the first and last of some batch.
EVERY_FEW_BYTES = pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.long)])


@pytest.fixture
def directory() -> Iterator[Path]:
    with memory_directory() as path:
        yield Path(path)


@pytest.fixture
def prefixes(directory: Path) -> list[tuple[dict[str, object], dict[str, bytes]]]:
    """For every number of batches: the facts of a log of so many, and its indexes once closed."""
    result = []
    for count in range(len(APPENDS) + 1):
        log = written(directory / f"first-{count}", count)
        known = facts(log)
        log.close()
        result.append((known, files_in(log.directory, *INDEXES)))
    return result


def segment_layouts(log: Log) -> list[tuple[Path, list[int]]]:
    """Each segment's file and where its batches start, with its size at the end."""
    return [
        (segment.path, [*(position for position, _ in segment.headers()), segment.size])
        for segment in log.segments
    ]


def copied(source: Path, directory: Path) -> Path:
    shutil.rmtree(directory, ignore_errors=True)
    return Path(shutil.copytree(source, directory))


def cuts(log: Log) -> Iterator[tuple[int, str, int]]:
    """Every byte at which the log may be torn: batches whole before it, file name, size left."""
    whole = 0
    for path, starts in segment_layouts(log):
        for start, end in pairwise(starts):
            for size in range(start + (start > 0), end):
                yield whole, path.name, size
            whole += 1
        yield whole, path.name, starts[-1]


def test_the_sample_has_several_segments_and_every_kind_of_index(directory: Path) -> None:
    log = written(directory)

    assert len(log.segments) >= 4
    assert {batch[22] & 7 for batch in read_all(log)} == set(Compression)
    assert len(log.aborted_transactions(0, log.log_end_offset)) >= 2
    assert any(len(segment.offset_index) > 2 for segment in log.segments)


@EVERY_FEW_BYTES
def test_a_tail_torn_at_any_byte_leaves_every_batch_before_it(
    directory: Path, prefixes: list[tuple[dict[str, object], dict[str, bytes]]], step: int
) -> None:
    log = crashed(directory / "whole")
    torn_at = list(cuts(log))[::step]
    log.release()

    for whole, name, size in torn_at:
        copy = copied(log.directory, directory / "torn")
        for path in copy.glob("*.log"):
            if path.name > name:
                path.unlink()
        with (copy / name).open("r+b") as file:
            file.truncate(size)

        again = open_test_log(copy, CONFIG)

        expected, indexes = prefixes[whole]
        found = facts(again)
        if int(name[:20]) == expected["end"]:  # its file was there already, and stays as an empty segment
            found["segments"] = expected["segments"]
        assert found == expected, (name, size)
        again.close()
        left = {name: data for name, data in files_in(copy, *INDEXES).items() if data}
        assert left == {name: data for name, data in indexes.items() if data}, (name, size)


def flips(log: Log, *, below: int | None = None) -> Iterator[tuple[int, Path, int, int]]:
    """A place in every byte of every batch: batches before it, file, start of the batch, the byte."""
    whole = 0
    for path, starts in segment_layouts(log):
        for start, end in pairwise(starts):
            for place in range(start, end):
                if below is None or whole < below:
                    yield whole, path, start, place
            whole += 1


UNPROTECTED = {*range(8), *range(12, 16)}  # base offset and leader epoch: no checksum covers them


@EVERY_FEW_BYTES
def test_a_flipped_bit_that_was_not_flushed_cuts_the_log_there(
    directory: Path, prefixes: list[tuple[dict[str, object], dict[str, bytes]]], step: int
) -> None:
    log = crashed(directory / "whole")
    places = list(flips(log))[::step]
    log.release()
    chance = random.Random(5)

    for whole, path, start, place in places:
        if place - start in UNPROTECTED:
            continue
        copy = copied(log.directory, directory / "flipped")
        flip(copy / path.name, place, 1 << chance.randrange(8))

        again = open_test_log(copy, CONFIG)

        assert read_all(again) == prefixes[whole][0]["batches"], (path.name, place)
        assert (copy / path.name).stat().st_size == start
        again.release()


@pytest.mark.parametrize("place", range(8))
def test_a_batch_whose_offset_cannot_be_is_cut_off(directory: Path, place: int) -> None:
    """In the newest segment a larger offset may pass for a gap that compaction left."""
    log = crashed(directory / "whole")
    for whole, path, start, at in list(flips(log)):
        if at - start != place:
            continue
        copy = copied(log.directory, directory / "flipped")
        flip(copy / path.name, at, 0x80)

        again = open_test_log(copy, CONFIG)

        survivors = len(read_all(again))
        beyond_any_index = place < 5
        if beyond_any_index or path != log.active.path:
            assert survivors == whole, (path.name, at)
        else:
            assert survivors in {whole, whole + 1}
        again.release()
    log.release()


def test_a_flipped_bit_in_flushed_data_is_reported_and_nothing_is_changed(directory: Path) -> None:
    log = written(directory / "whole")
    log.flush()
    recovery_point = log.recovery_point
    newest = log.active.path.name  # opening checks the segment that the recovery point lies in
    places = [place for place in flips(log) if place[1].name == newest]
    log.release()

    for _, path, start, place in places:
        if place - start in UNPROTECTED:
            continue
        flip(log.directory / path.name, place, 1)
        before = files_in(log.directory, ".log")

        with pytest.raises(CorruptLog, match=f"{path.name} is corrupt at byte {start}:") as report:
            open_test_log(log.directory, CONFIG, recovery_point=recovery_point)

        assert (report.value.path, report.value.position) == (log.directory / path.name, start)
        assert files_in(log.directory, ".log") == before
        flip(log.directory / path.name, place, 1)

    again = open_test_log(log.directory, CONFIG, recovery_point=recovery_point)
    assert again.log_end_offset == recovery_point
    again.release()


def flip(path: Path, place: int, bits: int) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        (byte,) = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ bits]))


# -- indexes ---------------------------------------------------------------------------------------


def look_everywhere(log: Log) -> list[object]:
    """Every offset and every time looked up: whatever an index could answer wrongly."""
    found: list[object] = [facts(log)]
    for offset in range(log.log_end_offset + 1):
        found += [bytes(log.read(offset, size)) for size in (0, 250, 700)]
    found += [log.offset_for_timestamp(TIMESTAMP + delta) for delta in range(-1, 110, 3)]
    return found


def _snapshot_facts(found: list[object]) -> list[object]:
    """Without the producers: after a clean stop only their last batches are known."""
    first = found[0]
    assert isinstance(first, dict)
    return [{name: value for name, value in first.items() if name != "producers"}, *found[1:]]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_damaged_indexes_mislead_nobody_and_are_made_again_as_they_were(
    directory: Path, suffix: str, clean: bool
) -> None:
    log = written(directory / "whole")
    expected = _snapshot_facts(look_everywhere(log))
    end = log.log_end_offset
    log.close()
    original = files_in(log.directory, *INDEXES)
    chance = random.Random(11)

    for name in (name for name in original if name.endswith(suffix)):
        size = len(original[name])
        damages: list[bytes | None] = [None, *(chance.randbytes(size) for _ in range(5)), bytes(size)]
        damages += [original[name][:length] for length in range(size) if length % _entry(suffix)]
        damages += [original[name] + chance.randbytes(length) for length in (1, 5)]
        for damage in damages:
            copy = copied(log.directory, directory / "damaged")
            if damage is None:
                (copy / name).unlink()
            else:
                (copy / name).write_bytes(damage)

            again = open_test_log(copy, CONFIG, clean=clean, recovery_point=end)

            assert _snapshot_facts(look_everywhere(again)) == expected, (name, damage)
            again.close()
            assert files_in(copy, *INDEXES) == original, (name, damage)


@pytest.mark.parametrize("clean", [True, False])
def test_an_offset_index_cut_to_fewer_entries_is_only_slower(directory: Path, clean: bool) -> None:
    log = written(directory / "whole")
    expected = _snapshot_facts(look_everywhere(log))
    end = log.log_end_offset
    log.close()
    for name, content in files_in(log.directory, ".index").items():
        for length in range(0, len(content), 8):
            copy = copied(log.directory, directory / "damaged")
            (copy / name).write_bytes(content[:length])

            again = open_test_log(copy, CONFIG, clean=clean, recovery_point=end)

            assert _snapshot_facts(look_everywhere(again)) == expected, (name, length)
            again.release()


def test_without_any_index_the_log_opens_and_makes_them_again(directory: Path) -> None:
    log = written(directory)
    log.close()
    original = files_in(log.directory, *INDEXES)
    for name in original:
        (log.directory / name).unlink()

    again = open_test_log(log.directory, CONFIG)
    again.close()

    assert files_in(log.directory, *INDEXES) == original


def _entry(suffix: str) -> int:
    return {".index": 8, ".timeindex": 12}[suffix]
