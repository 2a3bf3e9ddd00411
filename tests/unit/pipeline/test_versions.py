"""Files with versions on a file system that can only create: alone, and with others at the same time."""

import pytest

from headrace.pipeline.storage import versions
from headrace.pipeline.storage.versions import KEPT, VersionedStore
from unit.pipeline.interleaved_files import InterleavedFiles

KEY = "numbers/lock"


@pytest.fixture
def files() -> InterleavedFiles:
    return InterleavedFiles()


@pytest.fixture
def store(files: InterleavedFiles) -> VersionedStore:
    return VersionedStore("hdfs://one", files)


def content(store: VersionedStore, key: str = KEY) -> bytes | None:
    found = store.read(key)
    return None if found is None else found.content


def test_a_file_is_created_once(store: VersionedStore) -> None:
    assert content(store) is None
    assert store.create(KEY, b"one") is not None
    assert store.create(KEY, b"two") is None
    assert content(store) == b"one"


def test_only_the_last_version_can_be_replaced(store: VersionedStore) -> None:
    first = store.create(KEY, b"one")
    assert first is not None
    second = store.replace(KEY, b"two", first)
    assert second is not None
    assert store.replace(KEY, b"three", first) is None
    found = store.read(KEY)
    assert found is not None
    assert (found.content, found.version) == (b"two", second)


def test_a_version_does_not_come_back_after_a_deletion(store: VersionedStore) -> None:
    first = store.create(KEY, b"one")
    assert first is not None
    store.delete(KEY)
    assert content(store) is None
    store.delete(KEY)
    assert store.create(KEY, b"one") is not None
    assert store.replace(KEY, b"two", first) is None


def test_nor_after_the_deletion_of_its_directory(store: VersionedStore) -> None:
    first = store.create(KEY, b"one")
    assert first is not None
    store.delete_tree("numbers")
    assert content(store) is None
    assert store.create(KEY, b"one") is not None
    assert store.replace(KEY, b"two", first) is None


def test_content_is_any_bytes(store: VersionedStore) -> None:
    for each in (b"", b"\n", b"one\ntwo\n", bytes(range(256))):
        store.write(KEY, each)
        assert content(store) == each


def test_files_and_directories_are_listed(store: VersionedStore, files: InterleavedFiles) -> None:
    store.write("numbers/lock", b"one")
    store.write("numbers/stop", b"two")
    store.write("other", b"three")
    files.create("numbers/checkpoint/offsets", b"of Spark")
    store.delete("numbers/stop")
    assert list(store.children("numbers")) == ["checkpoint", "lock"]
    assert list(store.children("")) == ["numbers", "other"]
    assert list(store.children("nothing")) == []


def test_files_of_others_are_read_and_deleted(store: VersionedStore, files: InterleavedFiles) -> None:
    files.create("numbers/offsets/0", b"of Spark")
    assert content(store, "numbers/offsets/0") == b"of Spark"
    assert content(store, "numbers/offsets") is None
    store.delete("numbers/offsets")
    store.delete("numbers/offsets/0")
    assert content(store, "numbers/offsets/0") is None


def test_old_versions_are_cleaned_up(store: VersionedStore, files: InterleavedFiles) -> None:
    for number in range(3 * KEPT):
        store.write(KEY, b"%d" % number)
    assert len(list(files.names("numbers/lock.versions"))) == KEPT


@pytest.fixture
def _few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clean up so early that numbers are free again while others still want to create them."""
    monkeypatch.setattr(versions, "KEPT", 2)


@pytest.mark.usefixtures("_few_are_kept")
@pytest.mark.parametrize("seed", range(60))
def test_no_update_is_lost(seed: int) -> None:
    files = InterleavedFiles(seed)
    store = VersionedStore("hdfs://one", files)
    acknowledged: list[int] = []

    def count() -> None:
        for _ in range(6):
            found = store.read(KEY)
            number = 1 if found is None else int(found.content) + 1
            text = b"%d" % number
            version = store.create(KEY, text) if found is None else store.replace(KEY, text, found.version)
            if version is not None:
                acknowledged.append(number)

    files.run([count] * 3)
    assert len(set(acknowledged)) == len(acknowledged)
    assert int(content(store) or b"0") >= max(acknowledged)


@pytest.mark.usefixtures("_few_are_kept")
@pytest.mark.parametrize("seed", range(60))
def test_of_several_that_create_a_file_one_has_it_until_it_deletes_it(seed: int) -> None:
    files = InterleavedFiles(seed)
    store = VersionedStore("hdfs://one", files)
    holders = 0

    def hold() -> None:
        nonlocal holders
        for _ in range(3):
            version = store.create(KEY, b"mine")
            if version is None:
                continue
            holders += 1
            assert holders == 1
            for _ in range(2):
                version = store.replace(KEY, b"still mine", version)
                assert version is not None
            assert holders == 1
            holders -= 1
            store.delete(KEY)

    files.run([hold] * 3)
    assert content(store) is None


@pytest.mark.parametrize("seed", range(60))
def test_who_holds_a_version_of_a_deleted_directory_replaces_nothing(seed: int) -> None:
    files = InterleavedFiles(seed)
    store = VersionedStore("hdfs://one", files)
    first = store.create(KEY, b"old")
    assert first is not None
    created: list[str | None] = []

    def start_over() -> None:
        store.delete_tree("numbers")
        created.append(store.create(KEY, b"new"))

    def replace() -> None:
        store.replace(KEY, b"replaced", first)

    files.run([replace, start_over])
    assert created == [None] or content(store) == b"new"
