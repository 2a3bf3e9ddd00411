"""Names of certificates' subjects beside Java's own, and ssl.principal.mapping.rules beside Kafka's class."""

import itertools
import random
from typing import Final

import pytest

from compat.kafka_tools.assignors import can_compile
from compat.kafka_tools.java import KafkaJava
from compat.kafka_tools.principals import Answers, ask_java
from headrace.security.certificate_fields import distinguished_name
from headrace.security.pem import InvalidTlsSetting
from headrace.security.principal_mapping import NoMatchingRule, PrincipalMapper
from support.der import element

TYPES: Final = {
    "CN": "550403",
    "SN": "550404",
    "serialNumber": "550405",
    "C": "550406",
    "L": "550407",
    "ST": "550408",
    "STREET": "550409",
    "O": "55040a",
    "OU": "55040b",
    "UID": "0992268993f22c640101",
    "DC": "0992268993f22c640119",
    "email": "2a864886f70d010901",
    "unknown": "883703",
}
TAGS: Final = (0x02, 0x04, 0x0C, 0x12, 0x13, 0x14, 0x16, 0x1A, 0x1B, 0x1C, 0x1E)
VALUES: Final = (
    *(
        "Ann",
        "a,b",
        "a=b",
        "#x",
        " before",
        "after ",
        "  ",
        "a  b",
        " a b a ",
        "a\0b",
        "\rq\r",
        "\n",
        "tab\t",
    ),
    *("Müller", "日本", "😀", 'a+b<c>;"\\', "x" * 300),
)
RULES: Final = (
    "DEFAULT",
    "",
    ",DEFAULT",
    "default",
    "DEFAULT,garbage",
    "DEFAULT RULE:a/b/",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,DEFAULT",
    "RULE:^CN=(.*?),OU=(.*?),.*,C=(.*?)$/$1@$2/L , RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L, DEFAULT",
    "RULE:.*/x/",
    "RULE:.*/x/U",
    "RULE:(.*)/$1/U",
    "RULE:CN=(.*?)/$1/",
    "RULE:CN=(.*?),.*/$1@$4/",
    "RULE:CN=(.*?),.*/$12/",
    "RULE:CN=(.*?),.*/$0-$1/",
    r"RULE:CN=(.*)/\$1/",
    r"RULE:CN=(.*)/a\\b/",
    "RULE:CN=(?<who>[^,]*).*/${who}/",
    "RULE:CN=([^,]*),?(OU=.*)?/$1-$2/,DEFAULT",
    r"RULE:a\/b/c\/d/",
    r"RULE:CN=(.*)\/(.*)/$2\/$1/",
    "RULE:abc",
    "RULE:a/b",
    "RULE:a/b/X",
    "RULE:a/b/Lx",
    "RULE:[/a/",
    "RULE:(a/b/",
    r"RULE:CN=ann.*/bob/,,RULE:.*(CN)=(\w+).*/$2/U",
    r"RULE:^CN=(\w+).*/$1/L",
    "RULE:(?i)cn=(.*?),.*/$1/L",
    "RULE:CN=([^,]+), ?.*/$1/",
    r"RULE:CN=(\d+).*/$1/",
    "RULE:(C)(N)(=)(.)(.)(.)(.*?)()()()(,).*/$11$10$4$12/",
    "RULE:CN=(.*?),.*/a,b $1/,DEFAULT",
)
NEVER_USABLE: Final = ("RULE:CN=.*/$1/", "RULE:CN=.*/a$/", "RULE:CN=(?<who>[^,]*).*/${whom}/")
SUBJECTS: Final = (
    *("CN=Ann,OU=ServiceUsers,O=Org,C=DE", "CN=Adam,OU=Sales,O=Org,L=X,ST=Y,C=DE", "CN=ann", "", "O=Org"),
    *(r"CN=a\,b,OU=x", "CN=a/b", "CN=Müller,OU=x", "CN=ÄÖß,O=x", "CN=12,O=x", "CN=١٢,O=x", "cn=Ann,x"),
)


def attribute(kind: str, tag: int, value: str) -> bytes:
    encoding = {0x1C: "utf-32-be", 0x1E: "utf-16-be", 0x14: "latin-1"}.get(tag, "utf-8")
    return element(0x30, element(6, bytes.fromhex(kind)) + element(tag, value.encode(encoding, "replace")))


def any_name(lottery: random.Random) -> bytes:
    def part() -> bytes:
        count = lottery.choice([1, 1, 1, 2, 3])
        return element(
            0x31,
            b"".join(
                attribute(
                    lottery.choice(list(TYPES.values())), lottery.choice([0x0C, 0x13]), lottery.choice(VALUES)
                )
                for _ in range(count)
            ),
        )

    return element(0x30, b"".join(part() for _ in range(lottery.randint(0, 4))))


NAMES: Final = [
    *(
        element(0x30, element(0x31, attribute(*each)))
        for each in itertools.product(TYPES.values(), TAGS, VALUES)
    ),
    *(any_name(random.Random(seed)) for seed in range(500)),
]
MAPPED: Final = list(itertools.product((*RULES, *NEVER_USABLE), SUBJECTS))


@pytest.fixture(scope="module")
def answers(kafka_java: KafkaJava) -> Answers:
    if not can_compile(kafka_java):
        pytest.skip("Kafka's mapper is called from a Java source file, which needs a JDK: install one.")
    return ask_java(kafka_java, NAMES, MAPPED)


def test_names_are_written_as_java_writes_them(answers: Answers) -> None:
    for name, java in zip(NAMES, answers.names, strict=True):
        assert distinguished_name(name) == java, name.hex()


def test_rules_map_names_as_in_kafka(answers: Answers) -> None:
    for (rules, name), kafka in zip(MAPPED, answers.mapped, strict=True):
        if rules not in NEVER_USABLE:
            assert mapped(rules, name) == kafka, (rules, name)


def test_a_rule_that_fails_for_every_name_it_matches_is_refused_at_the_start(answers: Answers) -> None:
    kafka = {rules: set[str]() for rules in NEVER_USABLE}
    for (rules, _), answer in zip(MAPPED, answers.mapped, strict=True):
        if rules in NEVER_USABLE:
            kafka[rules].add(answer)

    assert all(found == {"invalid", "no rule"} for found in kafka.values())
    assert {mapped(rules, "CN=x") for rules in NEVER_USABLE} == {"invalid"}


def mapped(rules: str, name: str) -> str:
    try:
        return f"name {PrincipalMapper(rules).name(name)}"
    except NoMatchingRule:
        return "no rule"
    except InvalidTlsSetting:
        return "invalid"
