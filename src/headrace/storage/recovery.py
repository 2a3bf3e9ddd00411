"""Opening a log: without a scan after a clean shutdown, else with checks from the recovery point on.

Data below the recovery point had been flushed: damage there is not caused by a crash, and is reported with
file and position. A crash may have damaged anything after it: the log is truncated at the first invalid
batch, and all derived state is rebuilt.
"""

import logging
import re
from collections.abc import Callable, Collection
from functools import partial
from itertools import pairwise
from pathlib import Path

from headrace.storage.append.batches import read_end_marker
from headrace.storage.checks.damage import (
    Damage,
    EpochCheck,
    ReadAllowance,
    changed_since,
    ensure_offsets_fit,
)
from headrace.storage.compaction.swap import resume_swap
from headrace.storage.config import LogConfig
from headrace.storage.epochs import FILE_NAME as EPOCHS_FILE
from headrace.storage.epochs import LeaderEpochs
from headrace.storage.errors import CorruptLog
from headrace.storage.files import (
    CLEANED,
    DELETED,
    LOG,
    REPAIRED,
    SEGMENT_SUFFIXES,
    SWAP,
    TEMPORARY,
    names_in,
    segment_base_offsets,
)
from headrace.storage.log import Log
from headrace.storage.open_files import OpenFiles
from headrace.storage.producers.producers import Producers, snapshots_in
from headrace.storage.replay import Derived, replay, take_in
from headrace.storage.segment import Segment
from headrace.storage.segment_list import FILE_NAME as SEGMENT_LIST
from headrace.storage.segment_list import SegmentList
from headrace.storage.segments import Segments

_SEGMENT_FILE = re.compile(r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex)")

_UNFINISHED = {DELETED, CLEANED, REPAIRED, TEMPORARY, SWAP}
_NO_LIMIT = 2**63  # greater than every offset

logger = logging.getLogger(__name__)


def open_log(
    directory: Path,
    config: LogConfig,
    *,
    now_ms: Callable[[], int],
    recovery_point: int = 0,
    log_start_offset: int = 0,
    clean: bool = False,
    trusts_list: bool = True,
    allowance: ReadAllowance | None = None,
    files: OpenFiles | None = None,
    on_loss: Callable[[], None] = lambda: None,
) -> Log:
    """Open the log in `directory`; create it if there is none.

    `clean` means that the log was closed by its last owner; then nothing is scanned. Closed segments are
    compared with the list of them if `trusts_list`; the damaged ones are in `Log.damaged`, their files are
    left unchanged, and an empty file takes the place of a missing one. Raises CorruptLog if the newest
    segment is damaged below `recovery_point`, and leaves every byte of the log unchanged. `on_loss` is called
    before the log is truncated, or used without its newest segments.
    """
    directory.mkdir(parents=True, exist_ok=True)
    names = names_in(directory)
    if _is_interrupted(names):
        _finish_interrupted_work(directory, config)
        names = names_in(directory)
    segments = [
        Segment.open(directory, base_offset, config, files=files)
        for base_offset in segment_base_offsets(names)
    ]
    if not trusts_list:
        (directory / SEGMENT_LIST).unlink(missing_ok=True)  # a later start would trust it
    listed = SegmentList(directory, has_file=trusts_list and SEGMENT_LIST in names)
    create = partial(Segment.create, directory, config=config, now_ms=now_ms(), files=files)
    damaged: list[Damage] = []
    lost_end = bool(listed.entries) and (not segments or max(listed.entries) >= segments[-1].base_offset)
    if lost_end:
        logger.error("%s: the newest segments are missing, and their records are lost here", directory)
        on_loss()
        end = segments[-1].base_offset if segments else 0
        listed.remove([base_offset for base_offset in listed.entries if base_offset >= end])
    if listed.entries:
        damaged = _compare(segments, listed, log_start_offset, allowance or ReadAllowance(0), create)
    if not segments:
        segments = [create(log_start_offset)]
    for segment in segments[:-1]:
        segment.sealed = True
    log_start_offset = max(log_start_offset, segments[0].base_offset)
    derived = Derived(
        LeaderEpochs(directory, has_file=EPOCHS_FILE in names), Producers(directory, snapshots_in(names))
    )
    if clean:
        end = _open_trusted(segments, derived, log_start_offset)
        recovery_point = end
    else:
        end = _recover(
            segments,
            derived,
            log_start_offset,
            recovery_point,
            listed=listed,
            damaged=damaged,
            on_loss=on_loss,
        )
    for damage in damaged:
        logger.error("%s", damage)
    return Log(
        directory,
        config,
        now_ms=now_ms,
        segments=Segments(segments),
        derived=derived,
        log_start_offset=min(log_start_offset, end),
        log_end_offset=end,
        recovery_point=min(recovery_point, end),
        listed=listed,
        damaged=damaged,
        files=files,
    )


def _compare(
    segments: list[Segment],
    listed: SegmentList,
    log_start_offset: int,
    allowance: ReadAllowance,
    create: Callable[[int], Segment],
) -> list[Damage]:
    """Return the damage of closed segments that are not as they were listed; `create` replaces missing ones.

    Segments before the log start offset may be missing, because retention deletes them.
    """
    found = {segment.base_offset: segment for segment in segments}
    base_offsets = sorted({*found, *listed.entries})
    damaged = []
    for base_offset, end_offset in pairwise(base_offsets):
        entry, segment = listed.entries.get(base_offset), found.get(base_offset)
        if entry is None or end_offset <= log_start_offset:
            continue
        if segment is None:
            segment = create(base_offset)
            segments.append(segment)
            damaged.append(Damage(segment.path, base_offset, base_offset, end_offset, "the file is missing"))
        else:
            damaged += filter(None, [changed_since(segment, entry, end_offset, allowance)])
    segments.sort(key=lambda each: each.base_offset)
    return damaged


def _open_trusted(segments: list[Segment], derived: Derived, start: int) -> int:
    end = segments[-1].resume()
    _restore_epochs(segments, derived.epochs, start, end)
    derived.producers.restore(start=start, end=end)
    replay(derived, segments)
    derived.producers.next_offset = end
    return end


def _recover(
    segments: list[Segment],
    derived: Derived,
    start: int,
    recovery_point: int,
    *,
    listed: SegmentList,
    damaged: list[Damage],
    on_loss: Callable[[], None],
) -> int:
    """Check the batches that had not been flushed; return the log end offset.

    The damage of closed segments that had been flushed is added to `damaged`.
    """
    # A segment that ends at the recovery point has its records on disk, but perhaps not its indexes.
    flushed = max(0, sum(segment.base_offset < recovery_point for segment in segments) - 1)
    limits = [*(segment.base_offset for segment in segments[1:]), _NO_LIMIT]
    for number in range(flushed, len(segments)):
        segment, limit = segments[number], limits[number]
        # What is listed is durable, also if the checkpoint of the recovery point was not written any more.
        durable_to = max(recovery_point, limit) if segment.base_offset in listed.entries else recovery_point
        try:
            if not _recover_segment(segment, durable_to, limit, derived.epochs, on_loss):
                _drop(segments, number + 1)
                break
        except CorruptLog as error:
            if not segment.sealed:
                raise
            why = f"byte {error.position}: {error.why}"
            damaged.append(Damage(segment.path, segment.base_offset, segment.base_offset, limit, why))
    end = segments[-1].resume()
    _restore_epochs(segments, derived.epochs, start, end)
    # The producer state of the first unflushed segment is restored, and all later batches are replayed: that
    # also rebuilds the segments' indexes of aborted transactions.
    derived.producers.restore(start=start, end=segments[flushed].base_offset)
    replay(derived, segments[:flushed])
    sound = {segment.base_offset for segment in segments} - {each.base_offset for each in damaged}
    for segment in segments[flushed:]:
        if segment.base_offset in sound:
            _rebuild_txn_index(segment, derived)
    derived.producers.next_offset = end
    return end


def _recover_segment(
    segment: Segment, recovery_point: int, limit: int, epochs: LeaderEpochs, on_loss: Callable[[], None]
) -> bool:
    """Index the valid batches before `limit`, truncate the rest, and return whether all were valid."""
    segment.start_indexes_over()
    end, next_offset = 0, segment.base_offset
    epoch_check = EpochCheck(segment, epochs.entries, recovery_point)
    try:
        with segment.private_scanner() as scanner:
            for position, header in scanner.checked_headers():
                ensure_offsets_fit(segment, position, header, next_offset, limit)
                epoch_check.ensure_fits(position, header)
                if 0 <= header.leader_epoch < epochs.at(header.base_offset):
                    epochs.assign(header.leader_epoch, header.base_offset)
                segment.index(position, header)
                end, next_offset = position + header.size, header.next_offset
    except CorruptLog as damage:
        if next_offset < recovery_point:
            segment.release()
            raise
        on_loss()
        cut = min(end, damage.position)
        logger.warning("truncating %s from %d to %d bytes: %s", segment.path, segment.size, cut, damage.why)
        segment.cut(cut)
        if cut < end:  # batches are indexed that are gone
            _recover_segment(segment, recovery_point, limit, epochs, on_loss)
        return False
    if segment.sealed:
        segment.seal()
    return True


def _drop(segments: list[Segment], start: int) -> None:
    """Remove the segments after a truncated one, the last first, so that a crash leaves no gap."""
    while len(segments) > start:
        segment = segments.pop()
        logger.warning("removing %s: an earlier segment was truncated", segment.path)
        segment.delete()


def _rebuild_txn_index(segment: Segment, derived: Derived) -> None:
    aborted = []
    with segment.private_scanner() as scanner:
        for position, header in scanner.headers():
            marker = read_end_marker(scanner.batch(position, header), header) if header.is_control else None
            txn = take_in(derived, header, marker)
            if txn is not None:
                aborted.append(txn)
    segment.txn_index.replace(aborted)


def _restore_epochs(segments: list[Segment], epochs: LeaderEpochs, start: int, end: int) -> None:
    """Drop epochs outside the log; if the checkpoint was lost, rebuild the epochs from all batches."""
    if epochs.lost:
        for segment in segments:
            for _, header in segment.headers():
                epochs.assign(header.leader_epoch, header.base_offset)
    epochs.keep_within(start, end)


def _is_interrupted(names: Collection[str]) -> bool:
    """Return whether there are files that `_finish_interrupted_work` removes or renames."""
    bases = {name[: -len(LOG)] for name in names if name.endswith(LOG)}
    for name in names:
        stem, dot, ending = name.rpartition(".")
        suffix = dot + ending
        if suffix in _UNFINISHED or (suffix in SEGMENT_SUFFIXES and stem not in bases):
            return True
    return False


def _finish_interrupted_work(directory: Path, config: LogConfig) -> None:
    """Remove unfinished files, and finish interrupted renames."""
    for path in list(directory.iterdir()):
        if path.suffix in {DELETED, CLEANED, REPAIRED, TEMPORARY}:
            path.unlink()
    for path in sorted(directory.glob(f"*{LOG}{SWAP}")):
        resume_swap(directory, int(path.name.removesuffix(LOG + SWAP)), config)
    bases = set(segment_base_offsets(names_in(directory)))
    for path in list(directory.iterdir()):
        match = _SEGMENT_FILE.fullmatch(path.name)
        if path.suffix == SWAP or (match and int(match[1]) not in bases):
            path.unlink()
