"""Java's regular expressions in subscribePattern; tests/spark/test_java_agrees.py asks Java itself."""

import pytest

from headrace.spark.errors import InvalidOption
from headrace.spark.patterns.cursor import InvalidPattern
from headrace.spark.patterns.parser import MAX_CHARS, parse_pattern
from headrace.spark.patterns.pattern import TopicPattern


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("orders-.*", ["orders-", "orders-eu"], ["orders", "my-orders-eu"]),
        (r"a\.b|c", ["a.b", "c"], ["axb", "a.bc"]),
        (r"\Qa.b\E+", ["a.b", "a.bb"], ["axb"]),
        (r"\p{Alpha}++", ["orders", "ORDERS"], ["orders1", "or-ders"]),
        (r"\p{Lower}\P{Lower}", ["aB", "a1"], ["ab", "Ab"]),
        (r"\p{IsAlphabetic}\p{L}\pN\p{javaUpperCase}", ["ab1C"], ["ab1c", "1b1C"]),
        (r"[a-z&&[^bc]]+", ["adz"], ["abz"]),
        (r"[a-c[x-z]_]+", ["ax_"], ["d"]),
        (r"[^a-c]", ["d", "-"], ["a"]),
        (r"a(?i)b", ["ab", "aB"], ["AB"]),
        (r"((?i)a)b", ["Ab"], ["AB"]),
        (r"(?i:[a-c])x", ["Bx"], ["BX"]),
        ("(?x) a b # a comment\n c", ["abc"], ["a b"]),
        (r"\x61\x{62}\u0063\0144\cn", ["abcd."], ["abcd"]),
        (r"(a|b)\1", ["aa", "bb"], ["ab"]),
        (r"(?<c>a|b)-\k<c>", ["a-a"], ["a-b"]),
        (r"(?i)(a)\1", ["aA"], ["ab"]),
        (r"a\2", [], ["a", "aa"]),
        (r"(?>a|ab)c", ["ac"], ["abc"]),
        (r"a?+a", ["aa"], ["a"]),
        (r"(ab){1,2}+ab", ["ababab"], ["abab", "ab"]),
        (r"(ab)*?c", ["c", "ababc"], ["abab"]),
        (r"(?!tmp-).*", ["orders"], ["tmp-orders"]),
        (r".*(?<!-[a-z]{1,4})", ["orders", "orders-12345"], ["orders-tmp"]),
        (r".*(?<=-v\d{1,3})", ["orders-v12"], ["orders-v", "orders"]),
        (r"\bab\b.*", ["ab", "ab-c"], ["ab_c"]),
        (r"^\Aorders$\z", ["orders"], ["orders2"]),
        (r"\s|\h|\R", [], ["a", "-"]),
        (r"a{1001,}", ["a" * 1001], ["a" * 1000]),
    ],
)
def test_the_whole_name_has_to_match(pattern: str, matching: list[str], others: list[str]) -> None:
    made = TopicPattern(pattern)

    assert [name for name in matching + others if made.matches(name)] == matching


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(a", r"a group is not closed: '\)' is missing, at character 3"),
        ("a)", r"unmatched '\)', at character 2"),
        ("[a", "a class is not closed"),
        ("[z-a]", "the range z-a is empty"),
        ("[a&&]", "nothing follows '&&'"),
        ("*a", r"nothing precedes '\*', at character 1"),
        ("a**", r"'\*' follows another quantifier"),
        ("a{,2}", "expected {n}, {n,} or {n,m}"),
        ("a{3,2}", "the counts of a quantifier are not in order"),
        (r"\y", r"\\y is not an escape of Java"),
        (r"\p{Klingon}", "the property 'Klingon' is unknown or not supported"),
        (r"\xg1", "expected 2 hexadecimal digits"),
        (r"\x{110000}", "'110000' is not a code point"),
        (r"\k<a>", "there is no group 'a' before this"),
        (r"(a\1)", "a reference to group 1 inside of that group is not supported"),
        (r"(?<a>x)(?<a>y)", "group 'a' exists already"),
        (r"(?<1>x)", "'1' is not the name of a group"),
        (r"(?P<a>x)", r"\(\?P is not a group of Java"),
        (r"(?<=a+)b", "a lookbehind needs a maximum length"),
        ("(" * 60 + ")" * 60, "up to a depth of 50"),
        ("a" * (MAX_CHARS + 1), "it has 10001 characters"),
        ("a\\", "it ends too early"),
    ],
)
def test_what_is_not_supported_is_refused_with_a_reason(pattern: str, why: str) -> None:
    with pytest.raises(InvalidPattern, match=why):
        parse_pattern(pattern)


@pytest.mark.parametrize("pattern", [r"(a+)+b", r"(a|a)*b", r"(.*)*x"])
def test_a_catastrophic_pattern_is_matched_in_linear_time(pattern: str) -> None:
    assert not TopicPattern(pattern).matches("a" * 249)


@pytest.mark.parametrize("pattern", [r"(a+)+(?=b)b", r"((a*)*\2)*b"])
def test_a_catastrophic_pattern_with_lookaround_is_given_up(pattern: str) -> None:
    made = TopicPattern(pattern)

    with pytest.raises(InvalidOption, match="takes too long to match with topic 'aaaa"):
        made.matches("a" * 249)
