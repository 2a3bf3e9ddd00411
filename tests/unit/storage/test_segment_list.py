"""The list of closed segments, which a flush and a compaction may extend at the same time."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from headrace.storage.files import LOG, file_name
from headrace.storage.segment_list import SegmentList

SEGMENTS = range(0, 400, 10)


def test_threads_list_segments_at_the_same_time(tmp_path: Path) -> None:
    listed = SegmentList(tmp_path, has_file=False)
    for base_offset in SEGMENTS:
        (tmp_path / file_name(base_offset, LOG)).write_bytes(bytes(base_offset))

    with ThreadPoolExecutor(4) as threads:
        added = [
            threads.submit(listed.add, range(0, base_offset + 10, 10), is_stale=lambda: False)
            for base_offset in SEGMENTS
        ]
        for one in added:
            one.result()

    again = SegmentList(tmp_path, has_file=True)
    assert {base: entry.size for base, entry in again.entries.items()} == {base: base for base in SEGMENTS}
    assert not list(tmp_path.glob("*.tmp"))
