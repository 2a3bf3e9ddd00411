"""Group commit with a disk that waits until it is told: what may leave, and when."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headrace.coordination.embedded.acl import OPEN
from headrace.coordination.embedded.commit import GroupCommit
from headrace.coordination.embedded.journal import Journal
from headrace.coordination.embedded.txns import CreateNode, Entry


class SlowJournal(Journal):
    """Each batch is on the disk when the test says so."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, tick_ms=100, sync=True)
        self.disk = threading.Semaphore(0)
        self.batches: list[int] = []
        self.error: OSError | None = None

    def append(self, entries: list[bytes]) -> None:  # type: ignore[override]
        assert self.disk.acquire(timeout=10)
        if self.error is not None:
            raise self.error
        self.batches.append(len(entries))
        super().append(entries)


class Told:
    """An outlet that remembers."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.hung_up = False

    def release(self, messages: list[bytes]) -> None:
        assert not self.hung_up
        self.messages += messages

    def hang_up(self) -> None:
        self.hung_up = True


class Bench:
    def __init__(self, directory: Path) -> None:
        self.journal = SlowJournal(directory)
        self.failures: list[BaseException] = []
        self.commit = GroupCommit(self.journal, self.failures.append)

    def write(self) -> None:
        state = self.journal.state
        entry = Entry(state.zxid + 1, 0, CreateNode(f"/{state.zxid + 1}", b"", OPEN, 0))
        self.commit.write(entry)
        state.apply(entry)

    async def sync(self) -> None:
        """Let one batch reach the disk."""
        before = self.commit.batches + len(self.failures)
        self.journal.disk.release()
        while self.commit.batches + len(self.failures) == before:  # noqa: ASYNC110 - nobody would set the event
            await asyncio.sleep(0.001)


def play(directory: Path, scene: Callable[[Bench], Awaitable[None]]) -> None:
    async def main() -> None:
        bench = Bench(directory)
        await scene(bench)
        await bench.commit.stop()
        bench.journal.close()

    asyncio.run(main())


def test_without_writes_nothing_waits(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        told = Told()
        assert not bench.commit.send(told, b"read")
        assert told.messages == [b"read"]

    play(tmp_path, scene)


def test_a_reply_waits_for_its_write_and_so_does_whoever_could_have_seen_it(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        writer, reader = Told(), Told()
        bench.write()
        assert bench.commit.send(writer, b"written")
        assert bench.commit.send(reader, b"read in the same turn")
        await asyncio.sleep(0.02)
        assert bench.commit.send(reader, b"read while the disk is busy")
        assert writer.messages == reader.messages == []
        await bench.sync()
        assert writer.messages == [b"written"]
        assert reader.messages == [b"read in the same turn", b"read while the disk is busy"]

    play(tmp_path, scene)


def test_what_comes_in_while_the_disk_is_busy_shares_the_next_batch(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        told = Told()
        bench.write()
        bench.commit.send(told, b"1")
        await asyncio.sleep(0.02)
        for number in range(2, 7):
            bench.write()
            bench.commit.send(told, b"%d" % number)
        assert bench.commit.waiting == 6
        await bench.sync()
        assert told.messages == [b"1"]
        await bench.sync()
        assert told.messages == [b"1", b"2", b"3", b"4", b"5", b"6"]
        assert bench.journal.batches == [1, 5]

    play(tmp_path, scene)


def test_a_goodbye_comes_last(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        told = Told()
        bench.write()
        bench.commit.send(told, b"closed")
        bench.commit.close(told)
        assert not told.hung_up
        await bench.sync()
        assert (told.messages, told.hung_up) == ([b"closed"], True)

    play(tmp_path, scene)


def test_after_the_disk_has_refused_nobody_is_told_anything(tmp_path: Path) -> None:
    async def scene(bench: Bench) -> None:
        told = Told()
        bench.journal.error = OSError(5, "Input/output error")
        bench.write()
        bench.commit.send(told, b"written")
        await bench.sync()
        bench.write()
        bench.commit.send(told, b"written too")
        assert [str(each) for each in bench.failures] == ["[Errno 5] Input/output error"]
        assert told.messages == []

    play(tmp_path, scene)


def test_a_snapshot_is_taken_of_exactly_what_the_log_before_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.coordination.embedded.journal.SNAPSHOT_AFTER_ENTRIES", 8)

    async def scene(bench: Bench) -> None:
        for _ in range(40):
            bench.write()
            bench.write()
            await asyncio.sleep(0)
            bench.write()  # arrives while the batch before is on its way
            await bench.sync()
        bench.journal.disk.release(100)

    play(tmp_path, scene)
    assert list(tmp_path.glob("*.snapshot"))
    journal = Journal(tmp_path, tick_ms=100)
    assert journal.state.zxid == 120
    assert len(journal.state.tree.nodes) == journal.state.zxid + 4
    journal.close()
