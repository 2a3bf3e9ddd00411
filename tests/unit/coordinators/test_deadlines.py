from headrace.coordinators.deadlines import Deadlines


def test_what_is_due_is_forgotten_earliest_first() -> None:
    deadlines: Deadlines[str] = Deadlines()
    for key, at_ms in (("b", 20), ("a", 10), ("c", 30)):
        deadlines.set(key, at_ms)

    assert deadlines.next_ms() == 10
    assert list(deadlines.due(9)) == []
    assert list(deadlines.due(20)) == ["a", "b"]
    assert list(deadlines.due(20)) == []
    assert deadlines.next_ms() == 30


def test_what_is_due_at_one_moment_comes_in_the_order_it_was_set_in() -> None:
    deadlines: Deadlines[str] = Deadlines()
    for key in "cab":
        deadlines.set(key, 10)

    assert list(deadlines.due(10)) == ["c", "a", "b"]


def test_a_deadline_that_is_moved_on_is_due_then() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("a", 10)
    deadlines.set("a", 30)

    assert list(deadlines.due(29)) == []
    assert deadlines.next_ms() == 30
    assert list(deadlines.due(30)) == ["a"]


def test_a_deadline_that_is_moved_on_comes_after_those_that_are_earlier_now() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("a", 10)
    deadlines.set("b", 20)
    deadlines.set("a", 30)

    assert list(deadlines.due(40)) == ["b", "a"]


def test_a_deadline_that_is_moved_forward_is_due_once() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("a", 30)
    deadlines.set("a", 10)

    assert deadlines.next_ms() == 10
    assert list(deadlines.due(40)) == ["a"]
    assert list(deadlines.due(40)) == []


def test_what_is_cleared_is_never_due() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("a", 10)
    deadlines.clear("a")
    deadlines.clear("b")

    assert "a" not in deadlines
    assert len(deadlines) == 0
    assert list(deadlines.due(10)) == []
    assert deadlines.next_ms() is None


def test_what_is_cleared_can_be_set_again() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("a", 10)
    deadlines.clear("a")
    deadlines.set("a", 5)

    assert "a" in deadlines
    assert list(deadlines.due(5)) == ["a"]
    deadlines.set("a", 20)
    assert list(deadlines.due(10)) == []
    assert list(deadlines.due(20)) == ["a"]


def test_a_deadline_that_heartbeats_move_on_stands_in_the_heap_once() -> None:
    deadlines: Deadlines[str] = Deadlines()
    for now_ms in range(10_000):
        deadlines.set("a", now_ms + 10)

    assert len(deadlines._heap) == 1


def test_all_deadlines_move_with_a_clock_that_is_set() -> None:
    deadlines: Deadlines[str] = Deadlines()
    for key, at_ms in (("a", 10), ("b", 20), ("c", 30)):
        deadlines.set(key, at_ms)
    deadlines.clear("c")

    deadlines.shift(100)
    assert deadlines.next_ms() == 110
    assert list(deadlines.due(109)) == []
    deadlines.shift(-100)

    assert list(deadlines.due(20)) == ["a", "b"]
    assert len(deadlines) == 0


def test_deadlines_may_change_between_two_that_are_due() -> None:
    deadlines = Deadlines[str]()
    for key in "abcd":
        deadlines.set(key, 10)

    due = deadlines.due(20)
    assert next(due) == "a"
    deadlines.clear("b")
    deadlines.set("c", 30)
    deadlines.set("a", 5)  # has passed: it is left to the next call, or this one might never end

    assert list(due) == []
    assert list(deadlines.due(20)) == ["a", "d"]
    assert list(deadlines.due(30)) == ["c"]
