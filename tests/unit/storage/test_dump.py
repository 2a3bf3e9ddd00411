"""Files that no broker has written are refused before they are read, and padding is no entry."""

from pathlib import Path
from struct import pack

import pytest

from headrace.storage.dump import MAX_BYTES, entries
from headrace.storage.errors import CorruptIndex, StorageError

BASE = "00000000000000000100"


def test_zeros_at_the_end_of_an_index_are_padding(tmp_path: Path) -> None:
    """Kafka's active index is a sparse file of ten megabytes."""
    index, times = tmp_path / f"{BASE}.index", tmp_path / f"{BASE}.timeindex"
    index.write_bytes(pack(">iiii", 5, 4000, 9, 8100))
    times.write_bytes(pack(">qi", 1_700_000_000_000, 5))
    for each, size in ((index, 8), (times, 12)):
        with each.open("r+b") as file:
            file.truncate(10 * 1024 * 1024 // size * size)

    assert list(entries(index)) == [{"offset": 105, "position": 4000}, {"offset": 109, "position": 8100}]
    assert list(entries(times)) == [{"timestamp": 1_700_000_000_000, "offset": 105}]


def test_entries_that_do_not_ascend_are_damage(tmp_path: Path) -> None:
    index = tmp_path / f"{BASE}.index"
    index.write_bytes(pack(">iiii", 5, 4000, 4, 8100))
    found = entries(index)
    assert next(found) == {"offset": 105, "position": 4000}
    with pytest.raises(
        CorruptIndex, match=r"has the entry \(4, 8100\) after \(5, 4000\): entries have to ascend"
    ):
        next(found)


@pytest.mark.parametrize("name", [f"{BASE}.snapshot", f"{BASE}.txnindex", "leader-epoch-checkpoint"])
def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, name: str) -> None:
    with (tmp_path / name).open("wb") as file:
        file.truncate(MAX_BYTES + 1)  # sparse
    with pytest.raises(StorageError, match="has more than 134,217,728 bytes: no broker has written it"):
        next(entries(tmp_path / name))
