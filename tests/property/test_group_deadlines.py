"""Deadlines against a plain dictionary."""

import os

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.coordinators.deadlines import Deadlines

EXAMPLES = 40 * int(os.environ.get("HEADRACE_EXAMPLES", "3"))

keys = st.sampled_from("abc")
moments = st.integers(0, 20)
steps = st.lists(
    st.tuples(st.just("set"), keys, moments) | st.tuples(st.sampled_from(["clear", "due"]), keys, moments),
    max_size=40,
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(steps)
def test_whatever_is_set_moved_and_cleared_everything_is_due_once_and_in_time(
    story: list[tuple[str, str, int]],
) -> None:
    deadlines: Deadlines[str] = Deadlines()
    expected: dict[str, int] = {}
    now_ms = 0
    for what, key, ms in story:
        if what == "set":
            deadlines.set(key, now_ms + ms)
            expected[key] = now_ms + ms
        elif what == "clear":
            deadlines.clear(key)
            expected.pop(key, None)
        else:
            now_ms += ms
            due = {each for each, at_ms in expected.items() if at_ms <= now_ms}
            found = list(deadlines.due(now_ms))
            assert sorted(found) == sorted(due)
            expected = {each: at_ms for each, at_ms in expected.items() if each not in due}
        assert len(deadlines) == len(expected)
        assert all((each in deadlines) == (each in expected) for each in "abc")
        next_ms = deadlines.next_ms()
        assert not expected or (next_ms is not None and next_ms <= min(expected.values()))
