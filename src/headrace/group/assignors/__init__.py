"""The server-side assignors of KIP-848: which member of a consumer group reads which partitions.

An assignor is a function of its arguments alone. In what it returns, every partition of a topic that
somebody subscribes to has one owner, who subscribes to it, and every member is there, with an empty mapping
if nothing is left for it.

    uniform   every member has as many partitions as any other, and keeps what it had where that allows it
    range     members have neighbouring partitions of a topic, and the same ones of topics that are alike

Racks are not looked at, as in Kafka, whose assignors know them and do not use them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from headrace.group.assignors.common import Assignment, Assignor, AssignorMember
from headrace.group.assignors.range import assign_range
from headrace.group.assignors.uniform import assign_uniform

# By the name that a ConsumerGroupHeartbeat asks for; the first is for members that ask for none.
ASSIGNORS: Final[Mapping[str, Assignor]] = MappingProxyType(
    {"uniform": assign_uniform, "range": assign_range}
)

__all__ = ["ASSIGNORS", "Assignment", "Assignor", "AssignorMember", "assign_range", "assign_uniform"]
