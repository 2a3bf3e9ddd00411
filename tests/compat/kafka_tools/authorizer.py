"""Apache Kafka's StandardAuthorizer, run by `Authorize.java` on clusters that it reads as JSON.

A cluster is {"acls": [acl], "super_users": text, "allow_everyone": bool, "questions": [[principal, host,
operation, resource type, name]], "filters": [filter]}. A question without a name is authorizeByResourceType.
ACLs and filters are lists of the fields of CreateAcls and DescribeAcls, in their order.
"""

import json
import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from compat.kafka_tools.java import SHORT_LIVED, KafkaJava
from headrace.security.acls import (
    AclBinding,
    AclEntry,
    AclFilter,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from headrace.security.authorization import Operation, ResourceType
from headrace.security.principals import Principal

PROGRAM: Final = Path(__file__).with_name("Authorize.java")
TIMEOUT_S: Final = 120
ANY: Final = 1


class Question(NamedTuple):
    principal: Principal
    host: str
    operation: Operation
    resource_type: ResourceType
    name: str | None  # None: any resource of the type


class Cluster(NamedTuple):
    acls: Collection[AclBinding]
    super_users: Collection[Principal]
    allow_everyone: bool
    questions: Sequence[Question]
    filters: Sequence[AclFilter]


class Answers(NamedTuple):
    allowed: list[bool]  # per question
    found: list[set[AclBinding]]  # per filter


class Opinion(NamedTuple):
    answers: list[Answers]
    operations: dict[str, set[str]]  # of each type of resource, by Kafka's names in ZooKeeper


def ask_kafka(java: KafkaJava, clusters: Sequence[Cluster]) -> Opinion:
    """Return what Kafka decides and finds in each cluster, and the operations that it knows."""
    command = [str(java.java), *SHORT_LIVED, "-cp", f"{java.jars}/*", str(PROGRAM)]
    asked = json.dumps([_encoded(cluster) for cluster in clusters])
    ran = subprocess.run(command, input=asked, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    answers = [
        Answers(each["allowed"], [set(map(_binding, found)) for found in each["found"]])
        for each in said["clusters"]
    ]
    return Opinion(answers, {type_: set(names) for type_, names in said["operations"].items()})


def _encoded(cluster: Cluster) -> dict[str, Any]:
    return {
        "acls": [[*pattern, *entry] for pattern, entry in cluster.acls],
        "super_users": ";".join(map(str, cluster.super_users)),
        "allow_everyone": cluster.allow_everyone,
        "questions": [[str(question.principal), *question[1:]] for question in cluster.questions],
        "filters": [_encoded_filter(wanted) for wanted in cluster.filters],
    }


def _encoded_filter(wanted: AclFilter) -> list[Any]:
    type_, name, pattern_type, principal, host, operation, permission_type = wanted
    return [type_ or ANY, name, pattern_type, principal, host, operation or ANY, permission_type or ANY]


def _binding(fields: Sequence[Any]) -> AclBinding:
    type_, name, pattern_type, principal, host, operation, permission_type = fields
    pattern = ResourcePattern(ResourceType(type_), name, PatternType(pattern_type))
    return AclBinding(
        pattern, AclEntry(principal, host, Operation(operation), PermissionType(permission_type))
    )
