"""A new log, which has no files before its first append.

Most partitions of a large cluster are created long before anybody writes to them, and many are never written
to. Such a log is a few objects: it costs no system call, no inode and no file descriptor. A directory that
does not exist is an empty log, so nothing is lost if the broker stops before the first append.
"""

from collections.abc import Callable
from pathlib import Path

from headrace.storage.config import LogConfig
from headrace.storage.epochs import LeaderEpochs
from headrace.storage.identity import write_topic_id
from headrace.storage.log import Log
from headrace.storage.open_files import OpenFiles
from headrace.storage.producers.producers import Producers
from headrace.storage.replay import Derived
from headrace.storage.segment import Segment
from headrace.storage.segment_list import SegmentList
from headrace.storage.segments import Segments


def new_log(
    directory: Path,
    topic_id: bytes,
    config: LogConfig,
    *,
    now_ms: Callable[[], int],
    files: OpenFiles | None = None,
) -> Log:
    """Return an empty log whose files in `directory` are created by the first append."""
    segment = Segment.planned(directory, 0, config, now_ms=now_ms(), files=files)

    def create_files() -> None:
        directory.mkdir(parents=True, exist_ok=True)
        # The topic id first: records without it could be taken for those of a later topic of the same name.
        write_topic_id(directory, topic_id, sync=False)
        segment.create_files()

    return Log(
        directory,
        config,
        now_ms=now_ms,
        segments=Segments([segment]),
        derived=Derived(LeaderEpochs(directory, has_file=False), Producers(directory)),
        log_start_offset=0,
        log_end_offset=0,
        recovery_point=0,
        listed=SegmentList(directory, has_file=False),
        create_files=create_files,
        files=files,
    )
