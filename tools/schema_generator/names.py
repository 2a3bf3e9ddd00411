"""Gives structs of a request and of its response different names where Kafka gives them the same."""

from collections.abc import Mapping
from dataclasses import replace

from .model import MergedField, MergedMessage, MergedStruct


def settle_names(messages: tuple[MergedMessage, ...]) -> tuple[MergedMessage, ...]:
    """The same messages, fit to share a file.

    A struct that is the same in both stays one class under Kafka's name; two that differ get the
    name of their message in front: AlterPartitionRequestTopicData, AlterPartitionResponseTopicData.
    """
    if len(messages) == 1:
        return messages
    first, second = ({struct.name: struct for struct in message.structs} for message in messages)
    clashes = _clashes(first, second)
    return tuple(_prefix(message, clashes) for message in messages)


def _clashes(first: Mapping[str, MergedStruct], second: Mapping[str, MergedStruct]) -> set[str]:
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


def _prefix(message: MergedMessage, clashes: set[str]) -> MergedMessage:
    def new_name(name: str) -> str:
        return message.name + name if name in clashes else name

    def renamed(field: MergedField) -> MergedField:
        array = "[]" if field.is_array else ""
        return replace(field, kind=array + new_name(field.item_kind))

    structs = (
        MergedStruct(new_name(struct.name), tuple(map(renamed, struct.fields))) for struct in message.structs
    )
    return replace(message, structs=tuple(structs), fields=tuple(map(renamed, message.fields)))
