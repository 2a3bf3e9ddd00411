"""Our authorizer beside Kafka's own, on random ACLs whose names, principals and operations often meet."""

import random
from collections.abc import Mapping
from typing import Final

import pytest

from compat.kafka_tools.assignors import can_compile
from compat.kafka_tools.authorizer import Answers, Cluster, Opinion, Question, ask_kafka
from compat.kafka_tools.java import KafkaJava
from headrace.security.acl_authorizer import AclAuthorizer
from headrace.security.acl_index import AclIndex
from headrace.security.acl_storage import decode, directory, encode
from headrace.security.acls import (
    AclBinding,
    AclEntry,
    AclFilter,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from headrace.security.authorization import OPERATIONS, Operation, ResourceType
from headrace.security.principals import Principal

CLUSTERS: Final = 400
QUESTIONS: Final = 60
FILTERS: Final = 10
PRINCIPALS: Final = [Principal("alice"), Principal("bob"), Principal("a:b"), Principal("bob", type="Group")]
HOSTS: Final = ["10.0.0.1", "10.0.0.2", "0:0:0:0:0:0:0:1"]
# No name begins with "*", or with a character before it: Kafka 4.3 applies ACLs for `*` to every resource but
# "*a", and a search for "!a" does not end where "!b" has ACLs. Both contradict its documentation.
NAMES: Final = ["a", "ab", "abc", "abd", "abcde", "b", "hardcode", "hard", "ü", "üb"]
SPECIFIC: Final = [PatternType.LITERAL, PatternType.PREFIXED]


def random_cluster(lottery: random.Random) -> Cluster:
    """A cluster in which a few ACLs or many concern few names."""
    types = lottery.sample(list(ResourceType), lottery.randint(1, 2))
    names = lottery.sample(NAMES, lottery.randint(2, len(NAMES)))
    operations = lottery.sample(list(Operation), lottery.randint(2, len(Operation)))

    def acl() -> AclBinding:
        pattern = ResourcePattern(
            lottery.choice(types), lottery.choice([*names, "*"]), lottery.choice(SPECIFIC)
        )
        permission = lottery.choice([*PermissionType, PermissionType.ALLOW])
        principal = lottery.choice([*map(str, PRINCIPALS), "User:*"])
        return AclBinding(
            pattern,
            AclEntry(principal, lottery.choice([*HOSTS, "*", "*"]), lottery.choice(operations), permission),
        )

    def question() -> Question:
        name = lottery.choice([*NAMES, None, None])
        return Question(
            lottery.choice(PRINCIPALS),
            lottery.choice(HOSTS),
            lottery.choice(operations),
            lottery.choice(types),
            name,
        )

    def wanted() -> AclFilter:
        return AclFilter(
            lottery.choice([None, *types]),
            lottery.choice([None, "*", *names]),
            lottery.choice(list(PatternType)),
            lottery.choice([None, None, "User:alice", "User:*", "alice"]),
            lottery.choice([None, None, "*", "10.0.0.1"]),
            lottery.choice([None, None, *operations]),
            lottery.choice([None, None, *PermissionType]),
        )

    return Cluster(
        {acl() for _ in range(lottery.choice([0, 1, 3, 10, 40]))},
        lottery.choice([[], [], [PRINCIPALS[1]]]),
        lottery.random() < 0.3,
        [question() for _ in range(QUESTIONS)],
        [wanted() for _ in range(FILTERS)],
    )


@pytest.fixture(scope="module")
def clusters() -> list[Cluster]:
    return [random_cluster(random.Random(seed)) for seed in range(CLUSTERS)]


@pytest.fixture(scope="module")
def opinion(kafka_java: KafkaJava, clusters: list[Cluster]) -> Opinion:
    if not can_compile(kafka_java):
        pytest.skip("Kafka's authorizer is called from a Java source file, which needs a JDK: install one.")
    return ask_kafka(kafka_java, clusters)


def our_answers(cluster: Cluster) -> Answers:
    index = AclIndex(stored_and_loaded(cluster))
    authorizer = AclAuthorizer(
        index, super_users=cluster.super_users, allow_everyone_if_no_acl_found=cluster.allow_everyone
    )

    def allowed(question: Question) -> bool:
        principal, host, operation, resource_type, name = question
        if name is None:
            return authorizer.may_on_any_resource(principal, host, operation, resource_type)
        return authorizer.allows(principal, host, operation, resource_type, name)

    found = [set(index.find(wanted)) for wanted in cluster.filters]
    return Answers([allowed(question) for question in cluster.questions], found)


def stored_and_loaded(cluster: Cluster) -> Mapping[ResourcePattern, frozenset[AclEntry]]:
    """The ACLs of each pattern, as they come out of ZooKeeper."""
    acls: dict[ResourcePattern, set[AclEntry]] = {}
    for pattern, entry in cluster.acls:
        acls.setdefault(pattern, set()).add(entry)
    return {pattern: decode(encode(entries)) for pattern, entries in acls.items()}


def test_we_decide_as_kafka_does(clusters: list[Cluster], opinion: Opinion) -> None:
    said = [allowed for answers in opinion.answers for allowed in answers.allowed]
    assert len(said) == CLUSTERS * QUESTIONS
    assert min(said.count(True), said.count(False)) > len(said) / 10  # neither answer is rare
    for cluster, answers in zip(clusters, opinion.answers, strict=True):
        ours = our_answers(cluster).allowed
        wrong = [
            question
            for question, mine, kafkas in zip(cluster.questions, ours, answers.allowed, strict=True)
            if mine is not kafkas
        ]
        assert not wrong, cluster.acls


def test_we_find_the_acls_that_kafka_finds(clusters: list[Cluster], opinion: Opinion) -> None:
    assert sum(len(found) for answers in opinion.answers for found in answers.found) > CLUSTERS
    for cluster, answers in zip(clusters, opinion.answers, strict=True):
        assert our_answers(cluster).found == answers.found


def test_resource_types_have_the_operations_that_they_have_in_kafka(opinion: Opinion) -> None:
    ours = {
        directory(resource_type, PatternType.LITERAL).rpartition("/")[2]: {
            each.name.title().replace("_", "") for each in operations
        }
        for resource_type, operations in OPERATIONS.items()
    }

    assert ours == opinion.operations
