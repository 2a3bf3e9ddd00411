"""Java is asked what our tables and our regular expressions are copied from."""

import random
from typing import Any, Final

import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from headrace.security.expressions import InvalidExpression
from headrace.spark.kafka_settings import OF_SOURCES, REFUSED, check_names
from headrace.spark.option_values import parse_duration_s
from headrace.spark.patterns import topic_pattern

pytestmark = pytest.mark.extended

PATTERNS: Final = 300
SEED: Final = 20261117
ATOMS: Final = [
    r"a",
    r"b",
    r"-",
    r"_",
    r"A",
    r".",
    r"\.",
    r"\d",
    r"\D",
    r"\w",
    r"\W",
    r"\s",
    r"\S",
    r"\H",
    r"[ab]",
    r"[^a]",
    r"[a-c&&[^b]]",
    r"[^a-c&&b]",
    r"[ab[c-]]",
    r"[\w&&[^_]]",
    r"[\Qa-\E]",
    r"[]a]",
    r"[a-zA-Z&&[b-yB-Y]&&[^m]]",
    r"\p{Alpha}",
    r"\P{Lower}",
    r"\p{L}",
    r"\p{IsUppercase}",
    r"\p{Punct}",
    r"\pN",
    r"\Qa.b\E",
    r"\x61",
    r"\0141",
    r"\cn",
    r"\b",
    r"\B",
    r"^",
    r"$",
    r"\A",
    r"\z",
    r"\Z",
    r"\G",
    r"(?i)",
    r"(?-i)",
    r"(?x)",
    r"]",
    r"}",
    r"\1",
    r"\2",
    r"\12",
    r"\k<n>",
    r"\X",
    r"\R",
    r"\x{61}",
    r"[a&b]",
    r"[^^a]",
    r"{",
    r"\y",
]
QUANTIFIERS: Final = [
    "",
    "",
    "",
    "",
    *["*", "+", "?", "*?", "+?", "??", "*+", "++", "?+", "{2}", "{1,2}", "{0,}", "{2}?", "{1,2}+", "{2,1}"],
]
GROUPS: Final = [
    r"(%s)",
    r"(?:%s)",
    r"(?>%s)",
    r"(?=%s)",
    r"(?!%s)",
    r"(?<=%s)",
    r"(?<!%s)",
    r"(?i:%s)",
    r"(?<n>%s)",
    r"(?x:%s)",
    r"(?-i:%s)",
]


@pytest.fixture(scope="module")
def jvm(spark: SparkSession) -> Any:
    return spark._jvm


@pytest.mark.parametrize("kind", ["consumer.ConsumerConfig", "producer.ProducerConfig"])
def test_no_setting_of_java_s_clients_is_taken_for_another(jvm: Any, kind: str) -> None:
    package, name = kind.split(".")
    found = getattr(getattr(jvm.org.apache.kafka.clients, package), name).configNames()
    names = {each for each in found if not each.startswith("internal.")}

    assert "bootstrap.servers" in names
    check_names(names - REFUSED.keys(), OF_SOURCES)


@pytest.mark.parametrize("text", ["15m", "90s", "1500", "250ms", "500us", "2min", "1h", "1D", " 3s "])
def test_a_duration_is_as_long_as_for_spark(jvm: Any, text: str) -> None:
    expected_ms = jvm.org.apache.spark.network.util.JavaUtils.timeStringAsMs(text)

    assert int(parse_duration_s(text) * 1000) == expected_ms


def some_pattern(chance: random.Random, depth: int = 0) -> str:
    parts = []
    for _ in range(chance.randint(1, 4)):
        is_group = depth < 2 and chance.random() < 0.3
        part = chance.choice(GROUPS) % some_pattern(chance, depth + 1) if is_group else chance.choice(ATOMS)
        parts.append(part + chance.choice(QUANTIFIERS))
    made = "".join(parts)
    return f"{made}|{some_pattern(chance, depth + 1)}" if depth < 2 and chance.random() < 0.2 else made


def test_java_matches_the_same_names_with_the_same_patterns(jvm: Any) -> None:
    chance = random.Random(SEED)
    compared = 0
    while compared < PATTERNS:
        pattern = some_pattern(chance)
        try:
            ours = topic_pattern(pattern)
            theirs = jvm.java.util.regex.Pattern.compile(pattern)
        except (InvalidExpression, IllegalArgumentException):
            continue
        compared += 1
        for _ in range(4):
            name = "".join(chance.choice("aabbcABm1-_.") for _ in range(chance.randint(1, 6)))
            assert bool(ours.fullmatch(name)) == theirs.matcher(name).matches(), (pattern, name)


@pytest.mark.parametrize("pattern", ["(a", "[a", "*a", "a**", "a{3,2}", r"\y"])
def test_java_refuses_what_we_refuse(jvm: Any, pattern: str) -> None:
    with pytest.raises(InvalidExpression):
        topic_pattern(pattern)
    with pytest.raises(IllegalArgumentException):
        jvm.java.util.regex.Pattern.compile(pattern)
