"""Our assignors beside Kafka's own, on groups in the middle of their lives.

Range assigns what Kafka's assigns, to the partition. Of uniform there is more than one right answer: ours
has to be as balanced as Kafka's or more, and to move no more partitions.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from compat.kafka_tools.assignors import Question, ask_kafka, can_compile
from compat.kafka_tools.java import KafkaJava
from headrace.coordinators.group.assignors import ASSIGNORS, Assignment, AssignorMember

GROUPS: Final = 150
TOPICS: Final = [bytes([number]) * 16 for number in range(1, 9)]
Answer = tuple[Question, Mapping[str, Assignment], Mapping[str, Assignment]]  # what we say, what Kafka says


@pytest.fixture(scope="module")
def answers(kafka_java: KafkaJava) -> list[Answer]:
    if not can_compile(kafka_java):
        pytest.skip("Kafka's assignors are called from a Java source file, which needs a JDK: install one.")
    questions = [
        question
        for name in ASSIGNORS
        for alike in (True, False)
        for seed in range(GROUPS)
        for question in life_of_a_group(name, random.Random(seed), alike=alike)
    ]
    ours = [ASSIGNORS[question.assignor](question.members, question.partitions) for question in questions]
    return list(zip(questions, ours, ask_kafka(kafka_java, questions), strict=True))


def life_of_a_group(name: str, lottery: random.Random, *, alike: bool) -> Iterator[Question]:
    """A group at its start, then as members come and go and topics grow, owning what we assigned last."""
    partitions = {topic: lottery.randint(1, 12) for topic in TOPICS}
    chosen = frozenset(lottery.sample(TOPICS, lottery.randint(1, 8)))

    def newcomers(count: int) -> dict[str, AssignorMember]:
        def topics() -> frozenset[bytes]:
            return chosen if alike else frozenset(lottery.sample(TOPICS, lottery.randint(1, 4)))

        names = [f"member-{lottery.getrandbits(32):08x}" for _ in range(count)]
        return {
            name: AssignorMember(topics(), {}, lottery.choice([None, None, f"instance-{name[::-1]}"]))
            for name in names
        }

    group = newcomers(lottery.randint(4, 9))
    for _ in range(4):
        yield Question(name, group, dict(partitions))
        assigned = ASSIGNORS[name](group, partitions)
        stay = lottery.sample(sorted(group), len(group) - lottery.randint(0, 1))
        group = {member_id: group[member_id]._replace(owned=assigned[member_id]) for member_id in stay}
        group |= newcomers(lottery.randint(0, 2))
        partitions[lottery.choice(TOPICS)] += lottery.randint(0, 3)


def alike(question: Question) -> bool:
    return len({member.topics for member in question.members.values()}) == 1


def loads(assigned: Mapping[str, Assignment]) -> list[int]:
    return sorted(sum(map(len, assignment.values())) for assignment in assigned.values())


def unevenness(assigned: Mapping[str, Assignment]) -> int:
    return sum(load**2 for load in loads(assigned))


def moves(question: Question, assigned: Mapping[str, Assignment]) -> int:
    """How many partitions have an owner that they did not have before."""
    return sum(
        len(held - member.owned.get(topic, frozenset()))
        for name, member in question.members.items()
        for topic, held in assigned[name].items()
    )


def test_range_assigns_what_kafka_assigns(answers: list[Answer]) -> None:
    compared = [(ours, theirs) for question, ours, theirs in answers if question.assignor == "range"]
    assert len(compared) == 2 * 4 * GROUPS
    for ours, theirs in compared:
        assert ours == theirs


def test_uniform_is_as_balanced_as_kafka_and_moves_no_more_where_subscriptions_are_alike(
    answers: list[Answer],
) -> None:
    compared = [answer for answer in answers if answer[0].assignor == "uniform" and alike(answer[0])]
    assert len(compared) >= 4 * GROUPS
    for question, ours, theirs in compared:
        assert loads(ours) == loads(theirs)
        assert moves(question, ours) <= moves(question, theirs)


def test_uniform_is_at_least_as_balanced_as_kafka_where_subscriptions_differ(answers: list[Answer]) -> None:
    compared = [answer for answer in answers if answer[0].assignor == "uniform" and not alike(answer[0])]
    assert len(compared) > 2 * GROUPS
    for _, ours, theirs in compared:
        assert unevenness(ours) <= unevenness(theirs)


def test_uniform_moves_no_more_than_kafka_for_the_same_balance_where_subscriptions_differ(
    answers: list[Answer],
) -> None:
    compared = [
        (moves(question, ours), moves(question, theirs))
        for question, ours, theirs in answers
        if question.assignor == "uniform" and not alike(question) and loads(ours) == loads(theirs)
    ]
    assert len(compared) > 2 * GROUPS
    assert sum(ours for ours, _ in compared) <= sum(theirs for _, theirs in compared)
