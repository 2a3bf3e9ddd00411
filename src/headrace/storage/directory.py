"""A broker's log directory: its lock, its owner, its checkpoints and the partitions in it."""

import logging
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

from headrace.storage import checkpoints
from headrace.storage.config import LogConfig
from headrace.storage.errors import ForeignDirectory, LogOffline, StorageError
from headrace.storage.files import sync_directory, write_atomically
from headrace.storage.identity import Identity, claim, read_identity, read_topic_id, write_topic_id
from headrace.storage.lock import DirectoryLock
from headrace.storage.log import Log
from headrace.storage.recovery import open_log
from headrace.storage.topics import TopicPartition, check_topic_name, parse_directory

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

_DELETE_SUFFIX = "-delete"
_NO_LOGS = (_DELETE_SUFFIX, "-future", "-stray")  # names of directories that no log is opened from
_KRAFT_METADATA = "__cluster_metadata-0"
_LONGEST_FILE_NAME = 255
_CLOSING_THREADS = 8

logger = logging.getLogger(__name__)


class LogDirectory:
    """Every log under one directory. Opened with `open`; used from one thread, as its logs are."""

    def __init__(self, path: Path, lock: DirectoryLock, now_ms: Callable[[], int]) -> None:
        self.path = path
        self.logs: dict[TopicPartition, Log] = {}
        self.topic_ids: dict[TopicPartition, bytes] = {}
        self.high_watermarks = _read_checkpoint(path / HIGH_WATERMARKS)
        self.cleaner_offsets = _read_checkpoint(path / CLEANER_OFFSETS)
        self.failed: dict[TopicPartition, str] = {}  # logs that could not be opened, and why
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
    ) -> "LogDirectory":
        """Lock `path`, check whose it is, and open every log in it; made if there is nothing there.

        Raises ForeignDirectory, with nothing touched, if it belongs to another broker or cluster, is
        in use, or holds things that are no logs. A log that cannot be opened lands in `failed`.
        """
        owner = read_identity(path)
        if owner is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            claim(path, identity)  # refuse before so much as a lock file is made
        found = list(_partition_directories(path))
        lock = DirectoryLock(path)
        try:
            claim(path, identity)
            directory = cls(path, lock, now_ms)
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
        for doomed in self.path.glob(f"*{_DELETE_SUFFIX}"):
            shutil.rmtree(doomed)
        marker = self.path / CLEAN_SHUTDOWN
        clean = marker.exists()
        marker.unlink(missing_ok=True)  # from here on a crash means recovery
        recovery_points = _read_checkpoint(self.path / RECOVERY_POINTS)
        start_offsets = _read_checkpoint(self.path / LOG_START_OFFSETS)
        for number, (partition, path) in enumerate(found, start=1):
            try:
                self.logs[partition] = open_log(
                    path,
                    config_of(partition.topic),
                    now_ms=self._now_ms,
                    recovery_point=recovery_points.get(partition, 0),
                    log_start_offset=start_offsets.get(partition, 0),
                    clean=clean,
                )
                topic_id = read_topic_id(path)
                if topic_id is not None:
                    self.topic_ids[partition] = topic_id
            except (StorageError, OSError) as error:
                logger.exception("%s could not be opened", path)
                self.failed[partition] = str(error)
            progress(number, len(found))

    def create(self, partition: TopicPartition, topic_id: bytes, config: LogConfig) -> Log:
        """A new, empty log for `partition`; InvalidTopic if Kafka refuses its name."""
        check_topic_name(partition.topic)
        path = self.path / str(partition)
        log = open_log(path, config, now_ms=self._now_ms)
        write_topic_id(path, topic_id)
        sync_directory(self.path)
        self.logs[partition] = log
        self.topic_ids[partition] = topic_id
        return log

    def delete(self, partition: TopicPartition) -> None:
        """Forget a log and remove its files; once this returns it does not come back."""
        log = self.logs.pop(partition, None)
        if log is not None:
            log.release()
        for known in (self.topic_ids, self.high_watermarks, self.cleaner_offsets, self.failed):
            known.pop(partition, None)
        suffix = f"-{partition.partition}.{uuid4().hex}{_DELETE_SUFFIX}"
        doomed = self.path / f"{partition.topic[: _LONGEST_FILE_NAME - len(suffix)]}{suffix}"
        (self.path / str(partition)).rename(doomed)
        sync_directory(self.path)
        shutil.rmtree(doomed)

    def checkpoint(self) -> None:
        """Write down how far each log is flushed, where it starts, what is committed and what is clean."""
        online = {partition: log for partition, log in self.logs.items() if log.offline is None}
        self._write(RECOVERY_POINTS, {partition: log.recovery_point for partition, log in online.items()})
        started = {
            partition: log.log_start_offset
            for partition, log in online.items()
            if log.log_start_offset > log.segments[0].base_offset
        }
        self._write(LOG_START_OFFSETS, started)
        self._write(HIGH_WATERMARKS, self.high_watermarks)
        self._write(CLEANER_OFFSETS, self.cleaner_offsets)

    def close(self) -> None:
        """Stop cleanly: the next start takes no scan, unless a log is offline or could not be opened."""
        with ThreadPoolExecutor(_CLOSING_THREADS) as pool:  # syncs of several files share one wait
            closed = list(pool.map(_close, self.logs.values()))
        self.checkpoint()
        if all(closed) and not self.failed:
            write_atomically(self.path / CLEAN_SHUTDOWN, b'{"version":0,"brokerEpoch":-1}')
        self._lock.release()

    def release(self) -> None:
        """Let go of everything and write nothing, as a crash would."""
        for log in self.logs.values():
            log.release()
        self._lock.release()

    def _write(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        checkpoints.write_offsets(self.path / name, offsets)


def _close(log: Log) -> bool:
    try:
        log.close()
    except LogOffline:
        logger.exception("%s could not be closed", log.directory)
    return log.offline is None


def _partition_directories(path: Path) -> Iterator[tuple[TopicPartition, Path]]:
    """Every partition's directory under `path`; ForeignDirectory if there are others."""
    for child in sorted(path.iterdir()):
        if not child.is_dir() or child.name == _KRAFT_METADATA or child.name.endswith(_NO_LOGS):
            continue
        partition = parse_directory(child.name)
        if partition is None:
            raise ForeignDirectory(
                f"{child} is not named <topic>-<partition>: a log directory holds nothing but logs, "
                "choose another one or move that away"
            )
        yield partition, child


def _read_checkpoint(path: Path) -> dict[TopicPartition, int]:
    """The offsets in `path`; none if it is damaged: 0 is always a safe answer, only a slower one."""
    try:
        return checkpoints.read_offsets(path)
    except checkpoints.CorruptCheckpoint as error:
        logger.warning("starting without it: %s", error)
        return {}
