"""Tables as text."""

from headrace.cli.support.output import lines, table, together
from headrace.cli.support.tables import fitted, text_width


def test_numbers_are_aligned_right_and_nothing_is_padded_at_the_end() -> None:
    drawn = table(["topic", "partitions", "note"], [("orders", 3, None), ("a", 1000, "x")])
    assert list(lines(drawn, None)) == [
        "topic   partitions  note",
        "orders           3  -",
        "a             1000  x",
    ]


def test_a_table_is_folded_to_the_width_of_the_terminal() -> None:
    drawn = table(["setting", "meaning"], [("a", "one two three four"), ("b", "x" * 14)])
    assert list(lines(drawn, 20)) == [
        "setting  meaning",
        "a        one two",
        "         three four",
        "b        xxxxxxxxxxx",
        "         xxx",
    ]


def test_every_character_of_a_folded_cell_is_there() -> None:
    text = "".join(chr(0x4E00 + number) for number in range(50))
    drawn = list(lines(table(["k", "v"], [("a", text)]), 21))
    assert "".join(line[3:] for line in drawn[1:]) == text
    assert max(map(text_width, drawn)) <= 21


def test_wide_and_combining_characters_keep_columns_aligned() -> None:
    drawn = list(lines(table(["a", "b"], [("日本", "x"), ("e\u0301", "x"), ("abcd", "x")]), None))
    assert {text_width(line[: line.index("x")]) for line in drawn[1:]} == {6}


def test_control_characters_of_a_cell_do_not_reach_the_terminal() -> None:
    assert list(lines(table(["k"], [("a\x1b[2Jb\r\x07",)]), None)) == ["k", "a\\x1b[2Jb\\x0d\\x07"]


def test_a_cell_may_have_several_lines() -> None:
    assert list(lines(table(["k", "v"], [("a", "1\n2"), ("b", "3\n4")]), None))[1:] == [
        "a  1",
        "   2",
        "b  3",
        "   4",
    ]


def test_parts_are_separated_by_an_empty_line_and_titles_stand_above() -> None:
    drawn = together(["first\nline", table(["k"], [("v",)], title="Things")])
    assert list(lines(drawn, 80)) == ["first", "line", "", "Things", "", "k", "v"]


def test_only_the_largest_columns_are_cut() -> None:
    assert fitted([5, 40, 30], 45) == [5, 20, 20]
    assert fitted([5, 40, 30], 100) == [5, 40, 30]


def test_headings_are_bold_on_a_terminal() -> None:
    assert list(lines(table(["k"], [("v",)]), 80, styled=True)) == ["\x1b[1mk\x1b[0m", "v"]
