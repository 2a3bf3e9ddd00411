"""Regular expressions in subscribePattern; tests/spark/test_java_agrees.py asks Java itself."""

import pytest

from headrace.security.expressions import InvalidExpression
from headrace.spark.patterns import topic_pattern


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("orders-.*", ["orders-", "orders-eu"], ["orders", "my-orders-eu"]),
        (r"a\.b|c", ["a.b", "c"], ["axb", "a.bc"]),
        (r"\Qa.b\E+", ["a.b", "a.bb"], ["axb"]),
        (r"\Q(?=[a&&\1\E", ["(?=[a&&\\1"], [""]),
        (r"\p{Lu}\PN", ["AB", "Ab"], ["A1", "ab"]),
        (r"[a-c_]+", ["a_"], ["d"]),
        (r"[^a-c]", ["d", "-"], ["a"]),
        (r"[]a]+", ["a", "]a"], ["b"]),
        (r"[^]a]+", ["b"], ["a", "]"]),
        (r"[\[+{(]+\++", ["{+", "[++"], ["a+"]),
        (r"a(?i)b", ["ab", "aB"], ["AB"]),
        (r"(?i:[a-c])x", ["Bx"], ["BX"]),
        (r"\x61\x{62}+", ["ab", "abb"], ["a"]),
        (r"(ab)*?c{1,2}", ["c", "ababcc"], ["abab"]),
        (r"(?<c>a|b)", ["a"], ["c"]),
        (r"\bab\b.*", ["ab", "ab-c"], ["ab_c"]),
        (r"^\Aorders$\z", ["orders"], ["orders2"]),
        (r"(a+)+b", ["ab"], ["a" * 249]),
    ],
)
def test_the_whole_name_has_to_match(pattern: str, matching: list[str], others: list[str]) -> None:
    compiled = topic_pattern(pattern)

    assert [name for name in matching + others if compiled.fullmatch(name)] == matching


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"(?!tmp-).*", r"'\(\?!' is lookaround, which RE2 does not support: name the topics with subscribe"),
        (r".*(?<=-v)", r"'\(\?<=' is lookaround"),
        (r"(?>a|ab)c", r"'\(\?>' is an atomic group, which RE2 does not support: write \(\?:...\)"),
        (r"(a)\1", r"is a backreference, which RE2 does not support: write the alternatives out"),
        (r"(a)\12", "is a backreference"),
        (r"(?<c>a)\k<c>", "is a backreference"),
        (r"a++", r"'\+\+' is a possessive quantifier, which RE2 does not support: leave out its '\+'"),
        (r"a{1,2}+", r"'\{1,2\}\+' is a possessive quantifier"),
        (r"\p{Alpha}+", r"is a named property, .*: write a class as \[A-Za-z\]"),
        (r"[\p{IsLatin}]", "is a named property"),
        (r"[a-z&&[^b]]", "'&&' is an intersection of classes, .*: write the remaining characters out"),
        (r"[a-c[x-z]]", r"'\[' is a class inside of a class, .*: write \[a-cx-z\] for"),
        (r"\0141", "is an octal escape"),
        (r"a{,2}", "'{' is no quantifier, .*: write {n}, {n,} or {n,m}"),
        (r"a(?i){2}", "is a quantifier of flags"),
        (r"\b{g}", "'{' is no quantifier"),
        ("(?x) a", r"invalid perl operator: \(\?x"),
        (r"a\R", r"invalid escape sequence: \\R"),
        ("a{1001}", r"invalid repetition size: \{1001\}"),
        ("(a", r"missing \)"),
        ("[a", "missing ]"),
        ("a\\", r"trailing \\"),
    ],
)
def test_what_is_not_supported_is_refused_with_a_reason(pattern: str, why: str) -> None:
    with pytest.raises(InvalidExpression, match=why):
        topic_pattern(pattern)
