"""What was said, as lines of text that two brokers must agree on.

What cannot agree is named instead of shown: ids that a broker makes up, its address. How long it throttles
and the texts of errors, which are for people, are left out.

    b  Heartbeat v4  ->  error_code=REBALANCE_IN_PROGRESS
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from headrace.protocol.errors import ErrorCode
from headrace.protocol.message import Struct

LEFT_OUT: Final = {"throttle_time_ms", "error_message"}
IN_NO_ORDER: Final = {
    "JoinGroupResponse.members",
    "ConsumerGroupDescribeResponse.groups",
    "ListGroupsResponse.groups",
    "DescribedGroup.members",
    "OffsetCommitResponseTopic.partitions",
    "OffsetFetchResponse.topics",
    "OffsetFetchResponseTopic.partitions",
    "OffsetFetchResponseGroup.topics",
    "OffsetFetchResponseTopics.partitions",
    "OffsetDeleteResponse.topics",
    "DeleteGroupsResponse.results",
    "Assignment.topic_partitions",
    "TopicPartitions.partitions",
    "Member.subscribed_topic_names",
}
"""Lists in which a broker may name things in any order."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Step:
    """One request and what became of it."""

    who: str
    what: str
    version: int
    answer: Struct | str


@dataclass(slots=True)
class Names:
    """What stands for the things that are called differently on every run."""

    address: str
    members: dict[str, str] = field(default_factory=dict)  # the id that a broker gave -> whose it is
    topics: dict[bytes, str] = field(default_factory=dict)  # id -> name

    def text(self, value: str) -> str:
        """`value`; <a> for an id that a broker made up for a."""
        return f"<{self.members[value]}>" if value in self.members else _UUID.sub("<somebody>", value)

    def topic_id(self, value: bytes) -> str:
        return f"<id of {self.topics[value]}>" if value in self.topics else value.hex()


def lines(steps: Sequence[Step], names: Names) -> list[str]:
    return [f"{step.who}  {step.what} v{step.version}  ->  {_shown(step, names)}" for step in steps]


def _shown(step: Step, names: Names) -> str:
    return step.answer if isinstance(step.answer, str) else _Renderer(names, step.version).struct(step.answer)


@dataclass(frozen=True, slots=True)
class _Renderer:
    names: Names
    version: int

    def struct(self, value: Struct) -> str:
        kinds = {each.name: each for each in type(value).__fields__ if each.exists_in(self.version)}
        shown = {
            name: self.value(f"{type(value).__name__}.{name}", kind.item_kind, getattr(value, name))
            for name, kind in kinds.items()
            if name not in LEFT_OUT
        }
        return " ".join(f"{name}={text}" for name, text in _at_home(shown, self.names.address).items())

    def value(self, path: str, kind: str, value: Any) -> str:
        if isinstance(value, Struct):
            return f"({self.struct(value)})"
        if isinstance(value, list | tuple):
            items = [self.value(path, kind, each) for each in value]
            return f"[{', '.join(sorted(items) if path in IN_NO_ORDER else items)}]"
        if path.endswith(".error_code"):
            return ErrorCode(value).name
        if kind == "uuid":
            return self.names.topic_id(bytes(value))
        if kind == "string" and value is not None:
            return repr(self.names.text(value))
        return repr(bytes(value)) if kind == "bytes" and value is not None else repr(value)


def _at_home(shown: Mapping[str, str], address: str) -> dict[str, str]:
    """The fields with the broker's own address named: it has another one on every run."""
    host, _, port = address.rpartition(":")
    if shown.get("host") == repr(host) and shown.get("port") == port:
        return {**shown, "host": "<here>", "port": "<here>"}
    return dict(shown)
