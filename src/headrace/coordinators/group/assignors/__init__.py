"""The server-side assignors of KIP-848.

An assignor is a pure function. Its result assigns every partition of a subscribed topic to exactly one
subscriber, and contains every member, with an empty mapping for a member without partitions.

    uniform   balances the number of partitions per member; members keep their partitions where possible
    range     assigns consecutive partitions of each topic, alike for topics with equal partition counts

Racks are ignored, as in Kafka's assignors.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from headrace.coordinators.group.assignors.common import Assignment, Assignor, AssignorMember
from headrace.coordinators.group.assignors.range import assign_range
from headrace.coordinators.group.assignors.uniform import assign_uniform

# By the name in a ConsumerGroupHeartbeat; the first is the default.
ASSIGNORS: Final[Mapping[str, Assignor]] = MappingProxyType(
    {"uniform": assign_uniform, "range": assign_range}
)

__all__ = ["ASSIGNORS", "Assignment", "Assignor", "AssignorMember", "assign_range", "assign_uniform"]
