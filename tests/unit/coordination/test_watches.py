import pytest

from headrace.coordination.embedded.acl import OPEN
from headrace.coordination.embedded.errors import ErrorCode, KeeperError
from headrace.coordination.embedded.tree import Event, EventType
from headrace.coordination.embedded.watches import Mode, Watches

CREATED, DELETED, CHANGED, CHILDREN = EventType


def event(kind: EventType, path: str) -> Event:
    return Event(kind, path, OPEN)


@pytest.fixture
def watches() -> Watches[str]:
    return Watches()


def test_a_watch_is_heard_once(watches: Watches[str]) -> None:
    watches.add("ann", "/a", Mode.DATA)

    assert watches.trigger(event(CHANGED, "/a")) == ["ann"]
    assert watches.trigger(event(CHANGED, "/a")) == []
    assert len(watches) == 0


def test_data_and_child_watches_hear_different_things(watches: Watches[str]) -> None:
    watches.add("data", "/a", Mode.DATA)
    watches.add("child", "/a", Mode.CHILD)

    assert watches.trigger(event(CHILDREN, "/a")) == ["child"]
    assert watches.trigger(event(CHANGED, "/a")) == ["data"]


def test_a_deletion_is_told_once_to_who_has_both_kinds(watches: Watches[str]) -> None:
    watches.add("ann", "/a", Mode.DATA)
    watches.add("ann", "/a", Mode.CHILD)

    assert watches.trigger(event(DELETED, "/a")) == ["ann"]
    assert watches.count("ann") == 0


def test_asking_twice_is_asking_once(watches: Watches[str]) -> None:
    watches.add("ann", "/a", Mode.DATA)
    watches.add("ann", "/a", Mode.DATA)

    assert watches.trigger(event(CHANGED, "/a")) == ["ann"]
    assert watches.trigger(event(CHANGED, "/a")) == []


def test_watches_go_with_their_connection(watches: Watches[str]) -> None:
    watches.add("ann", "/a", Mode.CHILD)
    watches.add("bob", "/a", Mode.DATA)
    watches.forget("ann")

    assert watches.trigger(event(CHANGED, "/a")) == ["bob"]
    assert watches.count("ann") == 0


def test_there_is_a_bound_for_each_connection() -> None:
    watches = Watches[str](limit=2)
    for path in ("/a", "/b", "/a"):
        watches.add("ann", path, Mode.DATA)
    with pytest.raises(KeeperError) as refused:
        watches.add("ann", "/c", Mode.DATA)
    watches.add("bob", "/c", Mode.DATA)

    assert refused.value.code is ErrorCode.QUOTA_EXCEEDED


def test_long_paths_count_too(watches: Watches[str]) -> None:
    long = "/" + "x" * 1_040_000
    for number in range(16):
        watches.add("ann", f"{long}{number}", Mode.DATA)
    with pytest.raises(KeeperError):
        watches.add("ann", f"{long}-more", Mode.DATA)
    for number in range(16):
        watches.trigger(event(CREATED, f"{long}{number}"))

    watches.add("ann", f"{long}-more", Mode.DATA)
    assert watches.count("ann") == 1
