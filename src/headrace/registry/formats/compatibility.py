"""The compatibility levels, which are the same for all formats."""

from collections.abc import Sequence
from enum import StrEnum

from headrace.registry.formats.differences import Difference, TooComplex
from headrace.registry.formats.limits import MAX_MESSAGES
from headrace.registry.formats.schema import Parsed

_MAX_SHOWN = 1000  # characters of an old schema in a message


class Level(StrEnum):
    """Which of two schemas must be able to read the data of the other."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def transitive(self) -> bool:
        """Whether all earlier schemas are compared with, not only the latest."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def backward(self) -> bool:
        """Whether the new schema must read data of the old one."""
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def forward(self) -> bool:
        """Whether the old schema must read data of the new one."""
        return self.value.startswith(("FORWARD", "FULL"))


def check(new: Parsed, olds: Sequence[Parsed], level: Level, *, versions: Sequence[int] = ()) -> list[str]:
    """Return the incompatibilities of `new` with the newest incompatible one of `olds` (the oldest first).

    `versions` are the version numbers of `olds`, which the messages name if they are given.
    """
    count = len(olds) if level.transitive else min(len(olds), 1)
    for number in range(len(olds) - 1, len(olds) - 1 - count, -1):
        old = olds[number]
        messages: list[str] = []
        if level.backward:
            messages += incompatibilities(new, old, reader_name="new", writer_name="old")
        if level.forward:
            messages += incompatibilities(old, new, reader_name="old", writer_name="new")
        if messages:
            which = [f"{{oldSchemaVersion: {versions[number]}}}"] if versions else []
            text = f"'{old.canonical}'"
            if len(old.canonical) > _MAX_SHOWN:
                text = f"<truncated> '{old.canonical[:_MAX_SHOWN]}...'"
            about = [*which, f"{{oldSchema: {text}}}", f"{{compatibility: '{level}'}}"]
            return [*dict.fromkeys(messages), *about]
    return []


def incompatibilities(
    reader: Parsed, writer: Parsed, *, reader_name: str = "reader", writer_name: str = "writer"
) -> list[str]:
    """Return what keeps `reader` from reading all data of `writer`; [] if nothing does."""
    try:
        if reader.type is writer.type:
            found = reader.differences(writer)
        else:
            sentence = f"The {{reader}} schema is {reader.type}, the {{writer}} schema is {writer.type}"
            found = [Difference("SCHEMA_TYPE_CHANGED", "/", sentence)]
    except (TooComplex, RecursionError):
        sentence = "The {reader} schema and the {writer} schema are too complex to be compared"
        found = [Difference("TOO_COMPLEX", "/", sentence)]
    return [difference.message(reader_name, writer_name) for difference in found[:MAX_MESSAGES]]
