"""The open files of segments: how many there are, which are closed, and which are not."""

import os
import threading
from pathlib import Path

import pytest

from headrace.protocol.ids import TopicPartition
from headrace.storage.directory import CLEAN_SHUTDOWN
from headrace.storage.open_files import OpenFiles, SegmentFile
from support.logs import read_all
from support.records import make_batch
from unit.storage.directory_contents import CONFIG, TOPIC_ID, OpenDirectory

PARTITIONS = [TopicPartition("orders", number) for number in range(20)]


def made(files: OpenFiles, directory: Path, count: int) -> list[SegmentFile]:
    """Files that are open, created in this order."""
    every = [SegmentFile(directory / f"{number}.log", files) for number in range(count)]
    for each in every:
        each.create()
    return every


def opened(every: list[SegmentFile]) -> list[int]:
    return [number for number, each in enumerate(every) if each.opened is not None]


class TestLimit:
    def test_the_least_recently_used_file_is_closed_first(self, tmp_path: Path) -> None:
        files = OpenFiles(3)
        every = made(files, tmp_path, 4)  # each has a second chance, in turn
        assert opened(every) == [1, 2, 3]

        assert every[1].descriptor >= 0
        another = SegmentFile(tmp_path / "another.log", files)
        another.create()

        assert opened(every) == [1, 3]

    def test_a_closed_file_is_opened_again(self, tmp_path: Path) -> None:
        files = OpenFiles(1)
        every = made(files, tmp_path, 2)
        assert opened(every) == [1]

        os.pwrite(every[0].descriptor, b"x", 0)

        assert every[0].path.read_bytes() == b"x"
        assert opened(every) == [0]

    def test_a_file_with_unflushed_bytes_stays_open(self, tmp_path: Path) -> None:
        files = OpenFiles(2)
        every = made(files, tmp_path, 2)
        every[0].has_unflushed = True

        made(files, tmp_path / made_directory(tmp_path), 1)

        assert opened(every) == [0]

    def test_if_far_too_many_have_unflushed_bytes_one_is_flushed_and_closed(self, tmp_path: Path) -> None:
        flushed: list[SegmentFile] = []

        def flush(file: SegmentFile) -> bool:
            flushed.append(file)
            file.sync()
            return True

        files = OpenFiles(2, flush=flush)
        every = [SegmentFile(tmp_path / str(number), files) for number in range(4)]
        for each in every:
            each.create()
            each.has_unflushed = True

        assert flushed == [every[0]]
        assert opened(every) == [1, 2, 3]

    def test_the_limit_is_exceeded_rather_than_a_file_closed_that_cannot_be_flushed(
        self, tmp_path: Path
    ) -> None:
        files = OpenFiles(2, flush=lambda _file: False)
        every = [SegmentFile(tmp_path / str(number), files) for number in range(5)]
        for each in every:
            each.create()
            each.has_unflushed = True
        assert len(files) == 5

        for each in every:
            each.has_unflushed = False
        files.close_excess()

        assert len(opened(every)) == 2

    def test_more_than_three_quarters_are_a_crowd(self, tmp_path: Path) -> None:
        crowded: list[int] = []
        files = OpenFiles(8)
        files.on_crowded = lambda: crowded.append(len(files))

        every = made(files, tmp_path, 8)

        assert crowded == [7, 8]
        for each in every[2:5]:
            each.has_unflushed = True
        assert files.oldest_unflushed(2) == every[2:4]


def made_directory(path: Path) -> str:
    (path / "more").mkdir()
    return "more"


class TestIdleFiles:
    def test_a_file_that_nobody_used_is_closed(self, tmp_path: Path) -> None:
        files = OpenFiles()
        every = made(files, tmp_path, 3)
        every[2].has_unflushed = True

        files.close_idle()
        assert opened(every) == [0, 1, 2]
        assert every[1].descriptor >= 0
        files.close_idle()

        assert opened(every) == [1, 2]

    def test_one_that_was_flushed_too(self, tmp_path: Path) -> None:
        files = OpenFiles()
        (file,) = made(files, tmp_path, 1)
        os.pwrite(file.descriptor, b"x", 0)
        file.has_unflushed = True
        file.sync()

        files.close_idle()
        files.close_idle()

        assert file.opened is None


class TestSync:
    def test_a_failed_sync_leaves_the_file_unflushed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (file,) = made(OpenFiles(), tmp_path, 1)
        file.has_unflushed = True

        def failing(_descriptor: int) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(os, "fdatasync", failing)
        with pytest.raises(OSError, match="Input/output"):
            file.sync()

        assert file.has_unflushed

    def test_a_file_that_is_closed_meanwhile_is_synced(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The thread that syncs has its own descriptor: the number of ours may be another file's by then."""
        files = OpenFiles()
        (file,) = made(files, tmp_path, 1)
        synced: list[str] = []

        def closing_meanwhile(descriptor: int) -> None:
            file.close()
            with (tmp_path / "other").open("wb"):
                synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))

        monkeypatch.setattr(os, "fdatasync", closing_meanwhile)
        file.sync()

        assert synced == [str(file.path)]

    def test_threads_that_sync_never_use_a_descriptor_of_another_file(self, tmp_path: Path) -> None:
        files = OpenFiles(4)
        every = made(files, tmp_path, 40)
        wrong: list[str] = []
        is_over = threading.Event()

        def duplicate() -> None:
            while not is_over.is_set():
                for each in every:
                    descriptor = each.duplicate()
                    link = str(Path(f"/proc/self/fd/{descriptor}").readlink())
                    os.close(descriptor)
                    if link != str(each.path):
                        wrong.append(f"{each.path}: {link}")

        threads = [threading.Thread(target=duplicate) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(50):
            for each in every:
                os.fstat(each.descriptor)
        is_over.set()
        for thread in threads:
            thread.join()

        assert wrong == []
        assert len(files) <= 4


class TestDirectory:
    def test_its_logs_have_no_more_files_open_than_allowed(self, open_directory: OpenDirectory) -> None:
        directory = open_directory(max_open_files=4)
        logs = [directory.create(partition, TOPIC_ID, CONFIG) for partition in PARTITIONS]
        for turn in range(3):
            for number, log in enumerate(logs):
                log.append(make_batch([b"%d %d" % (number, turn)]), leader_epoch=0)
                assert len(directory.files) <= 6

        for log in logs:
            assert len(read_all(log)) == 3
        for log in logs:
            log.flush()
        directory.files.close_excess()
        assert len(directory.files) <= 4

    def test_a_file_is_flushed_before_it_is_closed(
        self, open_directory: OpenDirectory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        synced: list[str] = []
        fdatasync = os.fdatasync

        def noting(descriptor: int) -> None:
            synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
            fdatasync(descriptor)

        monkeypatch.setattr(os, "fdatasync", noting)
        directory = open_directory(max_open_files=4)
        logs = [directory.create(partition, TOPIC_ID, CONFIG) for partition in PARTITIONS]
        for log in logs:
            log.append(make_batch(), leader_epoch=0)

        closed = [log for log in logs if log.active.file.opened is None]

        assert len(closed) == len(PARTITIONS) - 6
        assert sorted(synced) == sorted(str(log.active.path) for log in closed)

    def test_a_log_whose_flush_fails_goes_offline_and_others_do_not(
        self, open_directory: OpenDirectory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        directory = open_directory(max_open_files=4)
        logs = [directory.create(partition, TOPIC_ID, CONFIG) for partition in PARTITIONS[:4]]
        for log in logs:
            log.append(make_batch(), leader_epoch=0)
        fdatasync = os.fdatasync

        def failing_once(_descriptor: int) -> None:
            monkeypatch.setattr(os, "fdatasync", fdatasync)
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(os, "fdatasync", failing_once)
        directory.flush_oldest_files()

        assert [log.offline is None for log in logs] == [False, True, True, True]
        assert logs[0].offline is not None
        assert "could not flush it" in logs[0].offline

    def test_a_file_that_is_deleted_before_it_is_flushed_is_no_error(
        self, open_directory: OpenDirectory
    ) -> None:
        directory = open_directory(max_open_files=4)
        logs = [directory.create(partition, TOPIC_ID, CONFIG) for partition in PARTITIONS[:4]]
        for log in logs:
            log.append(make_batch(), leader_epoch=0)
        files = [log.active.file for log in logs]
        directory.delete(PARTITIONS[0])
        logs[1].roll()
        logs[1].delete_oldest_segments(1)

        for file in files:
            directory._flush_file(file)

        assert [log.offline for log in logs[1:]] == [None] * 3

    def test_files_are_flushed_only_if_many_are_open(self, open_directory: OpenDirectory) -> None:
        directory = open_directory(max_open_files=8)
        logs = [directory.create(partition, TOPIC_ID, CONFIG) for partition in PARTITIONS[:7]]
        for log in logs[:6]:
            log.append(make_batch(), leader_epoch=0)
        directory.flush_oldest_files()
        assert len(directory.files.oldest_unflushed(8)) == 6

        logs[6].append(make_batch(), leader_epoch=0)
        directory.flush_oldest_files()

        assert directory.files.oldest_unflushed(8) == [log.active.file for log in logs[2:]]

    def test_more_logs_than_files_are_closed_cleanly_and_opened_again(
        self, open_directory: OpenDirectory
    ) -> None:
        directory = open_directory(max_open_files=3)
        for partition in PARTITIONS:
            directory.create(partition, TOPIC_ID, CONFIG).append(make_batch(), leader_epoch=0)
        directory.close()
        assert (directory.path / CLEAN_SHUTDOWN).exists()

        again = open_directory(max_open_files=3)

        assert [log.log_end_offset for log in again.logs.values()] == [1] * len(PARTITIONS)
        assert len(again.files) <= 3
