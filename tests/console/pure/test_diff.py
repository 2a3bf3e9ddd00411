"""What differs between two schemas."""

from headrace.gateway.console.views.schemas import Line, differences, readable


def test_what_is_new_and_what_is_gone_stands_between_lines_of_both() -> None:
    old, new = "a\nb\nc", "a\nB\nc"
    lines = [Line("", "a"), Line("minus", "b"), Line("plus", "B"), Line("", "c")]
    assert differences(old, new) == [Line("skipped", "@@ -1,3 +1,3 @@"), *lines]


def test_long_stretches_that_are_the_same_are_left_out() -> None:
    same = [f"line {index}" for index in range(40)]
    found = differences("\n".join(same), "\n".join([*same[:20], "new", *same[20:]]))
    assert [each.kind for each in found] == ["skipped", "", "", "", "plus", "", "", ""]
    assert found[0].text == "@@ -18,6 +18,7 @@"


def test_the_same_twice_is_said_to_be_the_same() -> None:
    assert differences("x\n" * 50, "x\n" * 50) == [Line("skipped", "@@ the same @@")]


def test_json_gets_a_line_for_each_thing_and_other_text_stays() -> None:
    assert readable('{"a":[1]}') == '{\n  "a": [\n    1\n  ]\n}'
    assert readable('syntax = "proto3";') == 'syntax = "proto3";'
    deep = "[" * 100_000 + "]" * 100_000
    assert readable(deep) == deep
