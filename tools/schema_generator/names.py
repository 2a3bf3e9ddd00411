"""Gives structs of a request and of its response different names where Kafka gives them the same."""

from collections.abc import Mapping
from dataclasses import replace

from .model import Field, Message, Schema, Struct


def settle_names(schema: Schema) -> Schema:
    """The same schema, with messages fit to share a file.

    A struct that is the same in both stays one class under Kafka's name; two that differ get the
    name of their message in front: AlterPartitionRequestTopicData, AlterPartitionResponseTopicData.
    """
    if len(schema.messages) == 1:
        return schema
    first, second = ({struct.name: struct for struct in message.structs} for message in schema.messages)
    clashes = _clashes(first, second)
    return replace(schema, messages=tuple(_prefix(message, clashes) for message in schema.messages))


def _clashes(first: Mapping[str, Struct], second: Mapping[str, Struct]) -> set[str]:
    clashes = {name for name in first.keys() & second.keys() if first[name] != second[name]}
    while True:  # a struct that holds clashing structs clashes too
        more = {
            name
            for name in first.keys() & second.keys()
            if any(field.item_kind in clashes for field in first[name].fields)
        }
        if more <= clashes:
            return clashes
        clashes |= more


def _prefix(message: Message, clashes: set[str]) -> Message:
    def new_name(name: str) -> str:
        return message.name + name if name in clashes else name

    def renamed(field: Field) -> Field:
        array = "[]" if field.is_array else ""
        return replace(field, kind=array + new_name(field.item_kind))

    structs = (
        Struct(new_name(struct.name), tuple(map(renamed, struct.fields))) for struct in message.structs
    )
    return replace(message, structs=tuple(structs), fields=tuple(map(renamed, message.fields)))
