"""What the records of a schema are called, which the subjects of RecordNameStrategy are made of.

An Avro record has a full name, a JSON schema a title. A Protobuf file has any number of messages, and the
data says which it is by a path of places: (1, 0) is the first message within the second one of the file.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.registry.formats import Resolve, Schema, SchemaType, parse
from headrace.registry.formats.avro_types import PRIMITIVES
from headrace.registry.formats.json_text import load

if TYPE_CHECKING:
    from headrace.registry.formats.protobuf import ProtobufSchema

Path = tuple[int, ...]


class RecordNames(NamedTuple):
    """The names by path; `by_path` says whether data has one. What has none is at the empty path."""

    names: Mapping[Path, frozenset[str]]
    by_path: bool = False


def record_names(schema: Schema, resolve: Resolve) -> RecordNames:
    """The names of what is written with the schema: none if it is no record; InvalidSchema if unreadable.

    Of Avro and JSON Schema no more is looked at than where the name stands: that has been understood before,
    if not by us.
    """
    match schema.type:
        case SchemaType.AVRO:
            return _one(_avro_name(load(schema.text)))
        case SchemaType.JSON:
            return _one(_title(load(schema.text)))
        case SchemaType.PROTOBUF:
            from headrace.registry.formats.protobuf import ProtobufSchema  # noqa: PLC0415  few need it

            parsed = parse(schema, resolve)
            assert isinstance(parsed, ProtobufSchema), parsed
            return RecordNames(_message_names(parsed), by_path=True)


def _one(name: str | None) -> RecordNames:
    return RecordNames({} if name is None else {(): frozenset({name})})


def _avro_name(root: Any) -> str | None:
    match root:
        case str() if root not in PRIMITIVES:  # what it refers to, which is called so
            return root
        case {"type": "record" | "error", "name": str() as name, **more}:
            namespace = more.get("namespace")
            return name if "." in name or not namespace else f"{namespace}.{name}"
    return None


def _title(root: Any) -> str | None:
    match root:
        case {"title": str() as title}:
            return title
    return None


def _message_names(schema: "ProtobufSchema") -> dict[Path, frozenset[str]]:
    """Two names may have one path: Python's serialiser counts the entries of maps, Java's does not."""
    package = f"{schema.file.package}." if schema.file.package else ""
    found: dict[Path, set[str]] = {}
    for with_entries in (True, False):
        for path, name in _walk(schema.file.message_type, package, with_entries=with_entries):
            found.setdefault(path, set()).add(name)
    return {path: frozenset(names) for path, names in found.items()}


def _walk(messages: Sequence[Any], scope: str, *, with_entries: bool) -> Iterator[tuple[Path, str]]:
    """Every message but maps' entries, with its path."""
    waiting: list[tuple[Path, str, Sequence[Any]]] = [((), scope, messages)]
    while waiting:
        above, scope, among = waiting.pop()
        counted = among if with_entries else [each for each in among if not each.options.map_entry]
        for place, message in enumerate(counted):
            if not message.options.map_entry:
                yield (*above, place), f"{scope}{message.name}"
                waiting.append(((*above, place), f"{scope}{message.name}.", message.nested_type))
