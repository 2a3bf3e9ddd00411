"""Merges the versions of a message into one description, as Kafka's own schema files have it."""

from collections.abc import Mapping, Sequence
from typing import Any

from .model import NOT_GIVEN, FieldFacts, MergedField, MergedMessage, MergedStruct, MessageFacts

# Kafka names these defaults, and kio does not pass them on.
KAFKA_DEFAULTS = {("ListPartitionReassignmentsRequest", "topics"): None}

# So common in responses, and so commonly "nothing happened", that nobody should have to write them.
QUIET_FIELDS = {"throttle_time_ms": 0, "error_code": 0, "error_message": None}


def merge(key: int | None, by_version: Mapping[int, MessageFacts]) -> MergedMessage:
    versions = tuple(sorted(by_version))
    name = by_version[versions[0]].name
    structs = [_merge_struct(struct, by_version) for struct in _struct_names(by_version)]
    *nested, root = structs
    assert root.name == name, f"{name}: {root.name} comes last"
    return MergedMessage(
        name=name,
        key=key,
        versions=versions,
        flexible=tuple(version for version in versions if by_version[version].flexible),
        structs=tuple(nested),
        fields=root.fields,
    )


def _struct_names(by_version: Mapping[int, MessageFacts]) -> list[str]:
    return merged_order([list(facts.structs) for _, facts in sorted(by_version.items())])


def _merge_struct(name: str, by_version: Mapping[int, MessageFacts]) -> MergedStruct:
    present = {v: facts.structs[name] for v, facts in sorted(by_version.items()) if name in facts.structs}
    order = merged_order([[field.name for field in fields] for fields in present.values()])
    fields = (_merge_field(name, field, present) for field in order)
    return MergedStruct(name, tuple(fields))


def merged_order(sequences: Sequence[list[str]]) -> list[str]:
    """One order that every sequence is a part of; what older versions alone have comes first.

    Of [topic, partitions] and [topic_id, partitions] it makes [topic, topic_id, partitions].
    """
    order: list[str] = []
    for sequence in reversed(sequences):
        position = 0
        for name in sequence:
            if name not in order:
                order.insert(position, name)
            assert order.index(name) >= position, f"{name} stands in different places: {order}"
            position = order.index(name) + 1
    return order


def _merge_field(struct: str, name: str, present: Mapping[int, tuple[FieldFacts, ...]]) -> MergedField:
    facts = {v: field for v, fields in present.items() for field in fields if field.name == name}
    sample = facts[max(facts)]
    for field in facts.values():
        assert (field.kind, field.tag) == (sample.kind, sample.tag), f"{struct}.{name} changes its type"
    nullable = tuple(version for version, field in facts.items() if field.nullable)
    default = _default(struct, sample, nullable=bool(nullable))
    return MergedField(
        name=name,
        kind=sample.kind,
        versions=tuple(facts),
        nullable=nullable,
        tag=sample.tag,
        default=default,
        required=default is NOT_GIVEN and sample.tag is None and len(facts) == len(present),
    )


def _default(struct: str, field: FieldFacts, *, nullable: bool) -> Any:
    if field.default is not NOT_GIVEN:
        return field.default
    if (struct, field.name) in KAFKA_DEFAULTS:
        return KAFKA_DEFAULTS[struct, field.name]
    quiet = QUIET_FIELDS.get(field.name, NOT_GIVEN)
    return NOT_GIVEN if quiet is None and not nullable else quiet
