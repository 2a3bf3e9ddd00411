"""A broker's log directory: its lock, its owner, its checkpoints and its logs."""

import logging
import re
import shutil
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from uuid import uuid4

from headrace.protocol.errors import KafkaError
from headrace.protocol.ids import TopicPartition
from headrace.storage.checkpoints import CorruptCheckpoint, OffsetCheckpoint, read_offsets
from headrace.storage.checks.damage import ReadAllowance
from headrace.storage.checks.losses import Losses, read_losses
from headrace.storage.config import LogConfig
from headrace.storage.errors import CorruptLog, ForeignDirectory, LogOffline, StorageError
from headrace.storage.files import base_offset_of, sync_directory, write_atomically
from headrace.storage.flushes import FlushSchedule
from headrace.storage.identity import (
    DirectoryLock,
    Identity,
    claim,
    read_identity,
    read_topic_id,
    write_topic_id,
)
from headrace.storage.log import Log
from headrace.storage.new_log import new_log
from headrace.storage.open_files import OpenFiles, SegmentFile
from headrace.storage.producers.producers import ProducerSpace
from headrace.storage.recovery import open_log
from headrace.storage.seed import Seed, SeedPlan, open_seeded, plan_seed
from headrace.storage.topics import check_topic_name, parse_directory

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
_CLEAN = b'{"version":0,"brokerEpoch":-1}\n'  # Kafka and older versions write no end of line
RUNNING = "headrace.running"  # a broker that keeps lists of segments has not closed the directory
_READ_AT_START = 1024**3  # bytes, at most, of segments whose modification time has changed

# Directories that are not opened as logs: partly deleted, or moved by Kafka to or from another disk.
_NO_LOG = re.compile(r".+-\d+\.[0-9a-f]{32}(?P<suffix>-delete|-future|-stray)")
_DELETE_SUFFIX = "-delete"
_KRAFT_METADATA = "__cluster_metadata-0"
BROKERS = "brokers"
"""A directory in a log directory: those of other brokers that share the disk, BROKERS/<broker id>."""
_NO_PARTITIONS = {_KRAFT_METADATA, BROKERS}
_LONGEST_FILE_NAME = 255
_CLOSING_THREADS = 8
_FLUSHING_THREADS = 8
_STEP = 16  # logs between two pauses, each of which takes some microseconds

logger = logging.getLogger(__name__)


class LogDirectory:
    """All logs of one directory. Opened with `open`; used from one thread, like its logs."""

    def __init__(
        self,
        path: Path,
        lock: DirectoryLock,
        now_ms: Callable[[], int],
        max_open_files: int,
        max_producer_ids: int,
    ) -> None:
        self.path = path
        self.producer_space = ProducerSpace(max_producer_ids)
        self.files = OpenFiles(max_open_files, flush=self._flush_file)
        self.logs: dict[TopicPartition, Log] = {}
        self.topic_ids: dict[TopicPartition, bytes] = {}
        self.high_watermarks = _open_checkpoint(path / HIGH_WATERMARKS)
        self.cleaner_offsets = _open_checkpoint(path / CLEANER_OFFSETS)
        self.failed: dict[TopicPartition, str] = {}  # logs that could not be opened, and the reason
        self.truncatable: dict[TopicPartition, int] = {}
        """Of `failed`: logs with a damaged newest segment, and its base offset; see `open_truncated`."""
        self._recovery_points = _open_checkpoint(path / RECOVERY_POINTS)
        self._start_offsets = _open_checkpoint(path / LOG_START_OFFSETS)
        self._writing = threading.Lock()
        self._deleted: deque[Path] = deque()  # directories that are still to be removed
        self._changed: set[Log] = set()  # logs to look at, see `take_changes`
        self.suspected: set[Log] = set()  # logs with segments that are damaged or to be checked
        self._flushes = FlushSchedule()
        self._forgotten: set[TopicPartition] = set()  # deleted, but the checkpoints may still have them
        self.losses: Losses  # of its logs; `open` finds out
        self._lock = lock
        self._now_ms = now_ms

    @classmethod
    def open(
        cls,
        path: Path,
        identity: Identity,
        *,
        config_of: Callable[[str], LogConfig],
        now_ms: Callable[[], int],
        progress: Callable[[int, int], None] = lambda _done, _total: None,
        max_open_files: int = sys.maxsize,
        max_producer_ids: int = sys.maxsize,
    ) -> "LogDirectory":
        """Lock `path`, check its owner, and open every log in it; create the directory if it is missing.

        Raises ForeignDirectory, without any change, if it belongs to another broker or cluster, is
        in use, or contains other directories. A log that cannot be opened is listed in `failed`.
        """
        owner = read_identity(path)
        if owner is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            claim(path, identity)  # refuse before the lock file is created
        found = list(_partition_directories(path))
        lock = DirectoryLock(path)
        try:
            claim(path, identity)
            directory = cls(path, lock, now_ms, max_open_files, max_producer_ids)
            directory._open_logs(found, config_of, progress)
        except BaseException:
            lock.release()
            raise
        return directory

    def _open_logs(
        self,
        found: list[tuple[TopicPartition, Path]],
        config_of: Callable[[str], LogConfig],
        progress: Callable[[int, int], None],
    ) -> None:
        for child in list(self.path.iterdir()):
            no_log = _NO_LOG.fullmatch(child.name)
            if no_log and no_log["suffix"] == _DELETE_SUFFIX:
                shutil.rmtree(child)
        marker = self.path / CLEAN_SHUTDOWN
        clean, running = marker.exists(), self.path / RUNNING
        # Whoever else has used the directory since has not kept the lists of segments.
        trusts_lists = (clean or running.exists()) and not was_closed_by_others(self.path)
        running.touch()
        allowance = ReadAllowance(_READ_AT_START)
        self.losses = read_losses(self.path, clean=clean)
        gone = {key for offsets in self._checkpoints for key in offsets} - {key for key, _ in found}
        self.losses.add(each for each in gone if any(offsets.get(each, 0) for offsets in self._checkpoints))
        for each in gone:
            self._forget(each)
        marker.unlink(missing_ok=True)  # after a crash from here on the logs are recovered
        sync_directory(self.path)
        for number, (partition, path) in enumerate(found, start=1):
            try:
                topic_id = read_topic_id(path)
                if topic_id is not None:
                    self.topic_ids[partition] = topic_id
                log = open_log(
                    path,
                    config_of(partition.topic),
                    now_ms=self._now_ms,
                    recovery_point=self._recovery_points.get(partition, 0),
                    log_start_offset=self._start_offsets.get(partition, 0),
                    clean=clean,
                    trusts_list=trusts_lists,
                    allowance=allowance,
                    files=self.files,
                    on_loss=partial(self.losses.add, [partition]),
                )
                self._add(partition, log)
                if log.log_end_offset < self.high_watermarks.get(partition, 0):
                    self.losses.add([partition])
            except (StorageError, KafkaError, OSError) as error:
                logger.exception("%s could not be opened", path)
                self.failed[partition] = str(error)
                if isinstance(error, CorruptLog):
                    self.truncatable[partition] = base_offset_of(error.path)
            progress(number, len(found))
        self.losses.add(self.failed)

    def _add(self, partition: TopicPartition, log: Log) -> None:
        self.logs[partition] = log
        log.changed, log.suspected = self._changed, self.suspected
        if log.damaged:
            self.suspected.add(log)
        log.producers.join(self.producer_space)
        if log.has_files:
            self._changed.add(log)

    def take_changes(self) -> Generator[None, None, None]:
        """Take note of what has changed in the logs, in steps: offsets for checkpoints, flushes that are due.

        Only logs that have changed since the last call are visited.
        """
        for number in range(1, len(self._changed) + 1):
            if not self._changed:
                return
            self._take_change(self._changed.pop())
            if not number % _STEP:
                yield

    def _take_change(self, log: Log) -> None:
        partition = parse_directory(log.directory.name)
        if partition is None or self.logs.get(partition) is not log:
            return  # it was deleted
        if log.has_files:
            self._recovery_points[partition] = log.recovery_point
        if log.segments and log.log_start_offset > log.segments.local_start_offset:
            self._start_offsets[partition] = log.log_start_offset
        else:
            self._start_offsets.pop(partition, None)
        self._flushes.put(log)

    def to_flush(self) -> list[TopicPartition]:
        """Return the logs that have closed segments to flush, or whose flush is due, after `take_changes`."""
        due = list(self._flushes.take_due(self._now_ms()))
        self._changed.update(due)  # a flush may fail: then it is due again
        names = (parse_directory(log.directory.name) for log in due)
        return [partition for partition in names if partition is not None]

    def flush_oldest_files(self) -> None:
        """Flush files of segments so that they can be closed, if many are open. May run in another thread."""
        files = self.files.oldest_unflushed(self.files.limit // 4) if self.files.is_crowded else []
        with ThreadPoolExecutor(_FLUSHING_THREADS) as pool:  # fsyncs of several files share one wait
            list(pool.map(self._flush_file, files))

    def _flush_file(self, file: SegmentFile) -> bool:
        """Flush a segment's file, or take its log offline; return whether the file can be closed."""
        partition = parse_directory(file.path.parent.name)
        log = None if partition is None else self.logs.get(partition)
        try:
            file.sync()
        except OSError as error:
            if log is None or log.offline is not None or all(each.file is not file for each in log.segments):
                return True  # it was deleted meanwhile
            log.failed("flush", error)
            return log.offline is not None
        return True

    def create(self, partition: TopicPartition, topic_id: bytes, config: LogConfig) -> Log:
        """Create an empty log for `partition`; its files are created by the first append.

        InvalidTopic is raised for a name that Kafka does not allow, and StorageError if there is a log that
        could not be opened: an operator has to repair or remove it.
        """
        check_topic_name(partition.topic)
        assert partition not in self.logs, partition
        if partition in self.failed:
            raise StorageError(self.failed[partition])
        if partition in self._forgotten:
            self.checkpoint()  # or a crash would leave the new log with the offsets of the old one
        log = new_log(self.path / str(partition), topic_id, config, now_ms=self._now_ms, files=self.files)
        self._add(partition, log)
        self.topic_ids[partition] = topic_id
        return log

    def set_topic_id(self, partition: TopicPartition, topic_id: bytes) -> None:
        """Store the id of the topic of a log that has none: its files were copied without it."""
        write_topic_id(self.path / str(partition), topic_id)
        self.topic_ids[partition] = topic_id

    def delete(self, *partitions: TopicPartition) -> None:
        """Remove logs from the directory; a crash after this returns does not bring them back.

        Their directories are renamed; `unlink_deleted` removes the files.
        """
        self.rename_retired([partition for partition in partitions if self.retire(partition)])

    def retire(self, partition: TopicPartition) -> bool:
        """Begin to delete a log: close it for good, and return whether `rename_retired` has to follow.

        Until then the partition must not be created again: its first append would find the old files.
        """
        log = self.logs.pop(partition, None)
        if log is not None:
            log.retire()
            log.producers.join(ProducerSpace())
            self._changed.discard(log)
            self.suspected.discard(log)
            self._flushes.remove(log)
        self._forget(partition)
        return log is None or log.has_files

    def rename_retired(self, partitions: Iterable[TopicPartition]) -> None:
        """Rename the directories of retired logs: no crash brings them back. May run in another thread."""
        for partition in partitions:
            self._rename(partition)
        sync_directory(self.path)

    def _rename(self, partition: TopicPartition) -> None:
        deleted = self.path / _name_of_deleted(partition)
        (self.path / str(partition)).rename(deleted)
        self._deleted.append(deleted)

    def open_truncated(self, partition: TopicPartition, config: LogConfig) -> Log:
        """Open a log of `truncatable` without the damage and all after it; `add_truncated` follows.

        May run in another thread. The controller has to know that this replica lacks records.
        """
        return open_log(
            self.path / str(partition),
            config,
            now_ms=self._now_ms,
            recovery_point=self.truncatable[partition],
            log_start_offset=self._start_offsets.get(partition, 0),
            allowance=ReadAllowance(_READ_AT_START),
        )

    def add_truncated(self, partition: TopicPartition, log: Log) -> None:
        del self.failed[partition], self.truncatable[partition]
        self._add(partition, log)

    def plan_seed(self, partition: TopicPartition, high_watermark: int) -> SeedPlan:
        """Return the files of a log to seed another broker's replica with."""
        return plan_seed(self.logs[partition], high_watermark)

    def prepare_staging(self, partition: TopicPartition) -> Callable[[], Path]:
        """Return a function that creates a directory for the seed of a replica, in any thread."""
        staging = self.path.resolve() / _name_of_deleted(partition)
        # A crash must not leave the seeded log with the offsets of a deleted one.
        write = self.prepare_checkpoint() if partition in self._forgotten else None

        def create() -> Path:
            if write is not None:
                write()
            staging.mkdir()
            return staging

        return create

    def open_seeded(
        self, partition: TopicPartition, topic_id: bytes, config: LogConfig, staging: Path, seed: Seed
    ) -> Log:
        """Rename a staging directory and open the log; `add_seeded` follows. May run in another thread."""
        assert partition not in self.logs, partition
        directory = self.path / str(partition)
        return open_seeded(staging, directory, seed, topic_id=topic_id, config=config, now_ms=self._now_ms)

    def add_seeded(self, partition: TopicPartition, topic_id: bytes, log: Log) -> None:
        self._add(partition, log)
        self.topic_ids[partition] = topic_id

    def discard_seeded(self, partition: TopicPartition, staging: Path) -> None:
        """Have `unlink_deleted` remove a staging directory, whether it was renamed or not."""
        if staging.exists():
            self._deleted.append(staging)
        elif partition not in self.logs and (self.path / str(partition)).exists():
            self._rename(partition)

    def unlink_deleted(self) -> None:
        """Remove the files of deleted logs, which may block for long. May run in another thread."""
        while True:
            try:
                deleted = self._deleted.popleft()
            except IndexError:
                return  # none is left: another thread may have taken the last one
            shutil.rmtree(deleted)

    def checkpoint(self) -> None:
        """Write the recovery point, log start offset, high watermark and cleaner offset of each log.

        A log that could not be opened keeps its entries: without its recovery point, the next
        start would take its damage for an incomplete write and truncate the log.
        """
        self.prepare_checkpoint()()

    def prepare_checkpoint(self) -> Callable[[], None]:
        """Collect the content of a checkpoint; return a function that writes it, in any thread.

        Of two prepared checkpoints the later one wins, whichever is written last.
        """
        for _ in self.take_changes():
            pass
        writes = [offsets.prepare() for offsets in self._checkpoints]
        forgotten = set(self._forgotten)

        def write() -> None:
            with self._writing:
                for write_one in writes:
                    write_one()
                self._forgotten -= forgotten

        return write

    def close(self) -> None:
        """Shut down cleanly: the next start needs no scan, unless a log is offline or could not be opened."""
        try:
            self.unlink_deleted()
            self.files.keep_open()
            with ThreadPoolExecutor(_CLOSING_THREADS) as pool:  # fsyncs of several files share one wait
                closed = list(pool.map(_close, self.logs.values()))
            self.checkpoint()
            if all(closed) and not self.failed:
                write_atomically(self.path / CLEAN_SHUTDOWN, _CLEAN)
                (self.path / RUNNING).unlink(missing_ok=True)
        finally:
            self._lock.release()

    def release(self) -> None:
        """Close all files and write nothing, as a crash would."""
        for log in self.logs.values():
            log.release()
        self._lock.release()

    @property
    def _checkpoints(self) -> list[OffsetCheckpoint]:
        return [self._recovery_points, self._start_offsets, self.high_watermarks, self.cleaner_offsets]

    def _forget(self, partition: TopicPartition) -> None:
        self.failed.pop(partition, None)
        self.truncatable.pop(partition, None)
        self.topic_ids.pop(partition, None)
        for offsets in self._checkpoints:
            offsets.pop(partition, None)
        self._forgotten.add(partition)


def was_closed_by_others(path: Path) -> bool:
    """Return whether Kafka or an older version, which keep no lists of segments, has closed the directory."""
    marker = path / CLEAN_SHUTDOWN
    return marker.exists() and marker.read_bytes() != _CLEAN


def _name_of_deleted(partition: TopicPartition) -> str:
    suffix = f"-{partition.partition}.{uuid4().hex}{_DELETE_SUFFIX}"
    return f"{partition.topic[: _LONGEST_FILE_NAME - len(suffix)]}{suffix}"


def _close(log: Log) -> bool:
    try:
        log.close()
    except (LogOffline, StorageError):
        logger.exception("%s could not be closed", log.directory)
        return False
    return log.offline is None


def _partition_directories(path: Path) -> Iterator[tuple[TopicPartition, Path]]:
    """Yield every partition directory under `path`; raise ForeignDirectory if there are other directories."""
    for child in sorted(path.iterdir()):
        if not child.is_dir() or child.name in _NO_PARTITIONS or _NO_LOG.fullmatch(child.name):
            continue
        partition = parse_directory(child.name)
        if partition is None:
            raise ForeignDirectory(
                f"{child} is not named <topic>-<partition>: a log directory holds nothing but logs, "
                "choose another one or move that away"
            )
        yield partition, child


def _open_checkpoint(path: Path) -> OffsetCheckpoint:
    """Return the offsets in `path`; none if it is damaged: 0 is always safe, only slower."""
    try:
        return OffsetCheckpoint(path, read_offsets(path))
    except CorruptCheckpoint as error:
        logger.warning("starting without a checkpoint: %s", error)
        return OffsetCheckpoint(path, {})
