"""Apache Kafka's server-side assignors, run by `Assign.java` on groups that it reads as JSON.

A question is {"assignor": name, "partitions": {topic: count}, "members": {id: {"topics": [topic],
"owned": {topic: [partition]}, "instance_id": …}}}; its answer is {member id: {topic: [partition]}}.
"""

import base64
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from compat.kafka_tools.java import SHORT_LIVED, KafkaJava
from headrace.coordinators.group.assignors import Assignment, AssignorMember

PROGRAM: Final = Path(__file__).with_name("Assign.java")
TIMEOUT_S: Final = 120


class Question(NamedTuple):
    assignor: str
    members: Mapping[str, AssignorMember]
    partitions: Mapping[bytes, int]


def can_compile(java: KafkaJava) -> bool:
    """Whether this Java runs a source file: a JDK does, a mere runtime does not."""
    modules = subprocess.run(
        [java.java, "--list-modules"], capture_output=True, text=True, check=True, timeout=TIMEOUT_S
    )
    return "jdk.compiler" in modules.stdout


def ask_kafka(java: KafkaJava, questions: Sequence[Question]) -> list[dict[str, Assignment]]:
    """What Kafka assigns to the members of each group."""
    command = [str(java.java), *SHORT_LIVED, "-cp", f"{java.jars}/*", str(PROGRAM)]
    asked = json.dumps([_encoded(question) for question in questions])
    ran = subprocess.run(command, input=asked, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert ran.returncode == 0, ran.stderr
    return [
        {name: _decoded(answer.get(name, {})) for name in question.members}  # it may leave out idle members
        for question, answer in zip(questions, json.loads(ran.stdout), strict=True)
    ]


def _encoded(question: Question) -> dict[str, Any]:
    members = {
        name: {
            "topics": [_text(topic) for topic in sorted(member.topics)],
            "owned": {_text(topic): sorted(held) for topic, held in member.owned.items()},
            "instance_id": member.instance_id,
        }
        for name, member in question.members.items()
    }
    partitions = {_text(topic): count for topic, count in question.partitions.items()}
    return {"assignor": question.assignor, "members": members, "partitions": partitions}


def _decoded(assignment: Mapping[str, list[int]]) -> Assignment:
    return {base64.urlsafe_b64decode(topic + "=="): frozenset(held) for topic, held in assignment.items()}


def _text(topic: bytes) -> str:
    return base64.urlsafe_b64encode(topic).decode().rstrip("=")
