"""The transaction log and snapshots on disk: what survives, what is dropped, what is refused."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.coordination.embedded.acl import OPEN, READ, Acl
from headrace.coordination.embedded.journal import KEPT_SNAPSHOTS, Journal
from headrace.coordination.embedded.jute import Reader
from headrace.coordination.embedded.snapshot import read_snapshot, write_snapshot
from headrace.coordination.embedded.state import CoordinatorState, Image
from headrace.coordination.embedded.txnlog import HEAD
from headrace.coordination.embedded.txns import (
    ChangeAcl,
    ChangeData,
    Checked,
    CloseSession,
    CreateNode,
    DeleteNode,
    Entry,
    OpenSession,
    Several,
    Txn,
    decode_entry,
    encode_entry,
)
from headrace.coordination.errors import CorruptJournal, JournalInUse
from support.logs import memory_directory

FIRST_LOG = f"{0:020d}.txnlog"
HISTORY: list[Txn] = [
    OpenSession(7, 1000, b"p" * 16),
    CreateNode("/a", b"data", OPEN, 0),
    CreateNode("/a/mine", None, (Acl(READ, "ip", "::1"),), 7),
    ChangeData("/a", b"\xf0HRB looks like a batch", 1),
    Several(
        (Checked("/a"), CreateNode("/b", b"", OPEN, 0), ChangeAcl("/b", (Acl(1, "world", "anyone"),), 1))
    ),
    DeleteNode("/b"),
    CloseSession(7, ("/a/mine",)),
    ChangeData("/a", b"last", 2),
]
BATCHES = [HISTORY[:1], HISTORY[1:4], HISTORY[4:5], HISTORY[5:]]


@pytest.fixture
def directory() -> Iterator[Path]:
    with memory_directory() as path:
        yield Path(path)


def opened(directory: Path) -> Journal:
    return Journal(directory, tick_ms=100, sync=False)


def write_batches(journal: Journal, batches: list[list[Txn]] = BATCHES) -> list[int]:
    """Returns the size of the file after each batch."""
    sizes = []
    for batch in batches:
        entries = []
        for txn in batch:
            entry = Entry(journal.state.zxid + 1, 1_000 + journal.state.zxid, txn)
            journal.state.apply(entry)
            entries.append(encode_entry(entry))
        journal.append(entries)
        sizes.append(journal._file.size)
    return sizes


def facts(state: CoordinatorState) -> tuple[object, ...]:
    tree = state.tree
    children = {path: set(tree.children(path)) for path in tree.nodes}
    return state.zxid, tree.nodes, children, tree.ephemerals(7), state.sessions.all()


def states_after_each_batch() -> list[tuple[object, ...]]:
    state = CoordinatorState(tick_ms=100)
    known = [facts(CoordinatorState(tick_ms=100))]
    for batch in BATCHES:
        for txn in batch:
            state.apply(Entry(state.zxid + 1, 1_000 + state.zxid, txn))
        known.append(facts(CoordinatorState(100, state.image())))
    return known


@pytest.mark.parametrize("txn", HISTORY, ids=lambda txn: type(txn).__name__)
def test_every_kind_of_entry_comes_back_as_it_was(txn: Txn) -> None:
    entry = Entry(2**40, 1_700_000_000_000, txn)

    assert decode_entry(Reader(encode_entry(entry))) == entry


def test_a_journal_opened_again_has_the_state_it_was_closed_with(directory: Path) -> None:
    journal = opened(directory)
    write_batches(journal)
    journal.close()

    assert facts(opened(directory).state) == facts(journal.state)


def test_torn_at_any_byte_the_log_keeps_exactly_the_whole_batches(directory: Path) -> None:
    journal = opened(directory / "whole")
    sizes = [HEAD.size, *write_batches(journal)]
    journal.close()
    known = states_after_each_batch()
    content = (directory / "whole" / FIRST_LOG).read_bytes()
    torn = directory / "torn"
    torn.mkdir()
    for size in range(HEAD.size, len(content)):
        for garbage in (b"", bytes(40)):  # cut short, or grown without its content
            (torn / FIRST_LOG).write_bytes(content[:size] + garbage)
            journal = opened(torn)
            whole = sum(size >= end for end in sizes[1:])
            assert facts(journal.state) == known[whole], (size, garbage)
            write_batches(journal, [[CreateNode("/after", b"", OPEN, 0)]])
            journal.close()
            journal = opened(torn)
            assert "/after" in journal.state.tree.nodes, (size, garbage)
            journal.close()


def test_a_flipped_bit_before_the_last_batch_is_reported_with_its_place(directory: Path) -> None:
    journal = opened(directory)
    sizes = [HEAD.size, *write_batches(journal)]
    journal.close()
    path = directory / FIRST_LOG
    content = path.read_bytes()
    for position in range(HEAD.size, sizes[-2]):
        damaged = bytearray(content)
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        start = max(size for size in sizes if size <= position)
        with pytest.raises(CorruptJournal, match=f"{path.name} is corrupt at byte {start}:"):
            opened(directory)
        assert path.read_bytes() == damaged  # looked at, not mended


def test_a_file_that_is_not_ours_is_left_alone(directory: Path) -> None:
    (directory / FIRST_LOG).write_bytes(b"something else altogether")

    with pytest.raises(CorruptJournal, match="at byte 0"):
        opened(directory)


def test_one_directory_has_one_coordinator(directory: Path) -> None:
    journal = opened(directory)
    with pytest.raises(JournalInUse, match="in use by another coordinator"):
        opened(directory)
    journal.close()

    opened(directory).close()


def snapshot_now(journal: Journal) -> Image:
    image = journal.state.image()
    journal.roll(image.zxid)
    journal.write_snapshot(image)
    return image


def test_a_snapshot_comes_back_as_it_was(directory: Path) -> None:
    journal = opened(directory)
    write_batches(journal, BATCHES[:2])
    image = journal.state.image()
    write_snapshot(directory / "x.snapshot", image, sync=False)

    assert read_snapshot(directory / "x.snapshot") == image
    assert image.sessions == [(7, 1000, b"p" * 16)]


def test_an_image_does_not_change_with_the_state(directory: Path) -> None:
    journal = opened(directory)
    write_batches(journal, BATCHES[:2])
    image = journal.state.image()
    before = dict(image.nodes)
    write_batches(journal, BATCHES[2:])

    assert image.nodes == before
    assert image.nodes != journal.state.tree.nodes


def test_snapshot_and_log_together_give_the_state(directory: Path) -> None:
    journal = opened(directory)
    write_batches(journal, BATCHES[:2])
    snapshot_now(journal)
    write_batches(journal, BATCHES[2:])
    journal.close()

    assert facts(opened(directory).state) == facts(journal.state)


def test_a_crash_between_the_new_log_file_and_the_snapshot_loses_nothing(directory: Path) -> None:
    journal = opened(directory)
    write_batches(journal, BATCHES[:2])
    journal.roll(journal.state.zxid)
    write_batches(journal, BATCHES[2:])
    journal.close()
    (directory / "00000000000000000004.snapshot.tmp").write_bytes(b"half")

    assert facts(opened(directory).state) == facts(journal.state)
    assert not list(directory.glob("*.tmp"))


def test_a_damaged_snapshot_is_replaced_by_an_older_one_and_the_log(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = opened(directory)
    write_batches(journal, BATCHES[:2])
    snapshot_now(journal)
    write_batches(journal, BATCHES[2:3])
    newest = directory / f"{snapshot_now(journal).zxid:020d}.snapshot"
    write_batches(journal, BATCHES[3:])
    journal.close()
    newest.write_bytes(newest.read_bytes()[:-9] + b"rubbish!!")

    assert facts(opened(directory).state) == facts(journal.state)
    assert "older snapshot" in caplog.text


def test_a_damaged_snapshot_without_an_older_one_is_reported(directory: Path) -> None:
    journal = opened(directory)
    for number in range(KEPT_SNAPSHOTS):
        write_batches(journal, [[CreateNode(f"/{number}", b"", OPEN, 0)]])
        snapshot_now(journal)
    journal.close()
    for snapshot in directory.glob("*.snapshot"):
        snapshot.write_bytes(b"rubbish")

    with pytest.raises(CorruptJournal, match="not a snapshot of a coordinator"):
        opened(directory)


def test_a_missing_log_file_is_reported(directory: Path) -> None:
    journal = opened(directory)
    for number in range(3):
        write_batches(journal, [[CreateNode(f"/{number}", b"", OPEN, 0)]])
        journal.roll(journal.state.zxid)
    journal.close()
    for missing in (0, 1):
        broken = directory / f"without-{missing}"
        broken.mkdir()
        for file in directory.glob("*.txnlog"):
            shutil.copy(file, broken)
        (broken / f"{missing:020d}.txnlog").unlink()
        with pytest.raises(CorruptJournal):
            opened(broken)


def test_old_files_are_purged_and_the_rest_still_gives_the_state(directory: Path) -> None:
    journal = opened(directory)
    for number in range(2 * KEPT_SNAPSHOTS):
        write_batches(journal, [[CreateNode(f"/{number}", b"", OPEN, 0)]])
        snapshot_now(journal)
    journal.close()

    assert len(list(directory.glob("*.snapshot"))) == KEPT_SNAPSHOTS
    assert len(list(directory.glob("*.txnlog"))) == KEPT_SNAPSHOTS
    assert facts(opened(directory).state) == facts(journal.state)


def test_files_that_hold_passwords_are_for_their_owner_alone(directory: Path) -> None:
    journal = opened(directory)
    snapshot_now(journal)
    journal.close()

    assert {path.stat().st_mode & 0o077 for path in directory.glob("0*")} == {0}
