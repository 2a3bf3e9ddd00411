from pathlib import Path

import pytest

from headrace.storage.errors import CorruptIndex
from headrace.storage.txn_index import AbortedTxn, TxnIndex

FIRST = AbortedTxn(producer_id=7, first_offset=10, last_offset=20, last_stable_offset=21)
SECOND = AbortedTxn(producer_id=8, first_offset=5, last_offset=30, last_stable_offset=31)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.txnindex"


def test_without_aborted_transactions_there_is_no_file(path: Path) -> None:
    assert list(TxnIndex(path.parent, path.name)) == []
    assert not path.exists()


def test_entries_have_kafkas_layout_and_are_in_the_file_at_once(path: Path) -> None:
    TxnIndex(path.parent, path.name).append(FIRST)

    assert path.read_bytes().hex() == "0000" + "".join(f"{number:016x}" for number in FIRST)


def test_entries_come_back_in_their_order(path: Path) -> None:
    index = TxnIndex(path.parent, path.name)
    index.append(FIRST)
    index.append(SECOND)

    assert list(index) == list(TxnIndex(path.parent, path.name)) == [FIRST, SECOND]


@pytest.mark.parametrize(("offset", "kept"), [(20, []), (21, [FIRST]), (30, [FIRST]), (31, [FIRST, SECOND])])
def test_truncation_drops_transactions_whose_marker_goes(
    path: Path, offset: int, kept: list[AbortedTxn]
) -> None:
    index = TxnIndex(path.parent, path.name)
    index.append(FIRST)
    index.append(SECOND)

    index.truncate_to(offset)

    assert list(index) == list(TxnIndex(path.parent, path.name)) == kept
    assert path.exists() == bool(kept)


def test_a_torn_file_is_corrupt(path: Path) -> None:
    TxnIndex(path.parent, path.name).append(FIRST)
    path.write_bytes(path.read_bytes()[:-1])

    with pytest.raises(CorruptIndex, match="33 bytes"):
        list(TxnIndex(path.parent, path.name))


def test_an_entry_of_another_version_is_corrupt(path: Path) -> None:
    TxnIndex(path.parent, path.name).append(FIRST)
    path.write_bytes(b"\x00\x01" + path.read_bytes()[2:])

    with pytest.raises(CorruptIndex, match="version 1"):
        list(TxnIndex(path.parent, path.name))
