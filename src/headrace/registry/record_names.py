"""The names of a schema's records, of which RecordNameStrategy makes subjects; and schemas by their ids.

An Avro record has a full name, a JSON schema a title. A Protobuf file has any number of messages; the data
names one by a path of indexes: (1, 0) is the first message within the second one of the file.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from headrace.registry.formats import InvalidSchema, Reference, Resolve, Schema, SchemaType, parse
from headrace.registry.formats.avro.types import PRIMITIVES
from headrace.registry.formats.json.text import load
from headrace.registry.formats.limits import MAX_REFERENCES
from headrace.registry.library import Library
from headrace.registry.records import SchemaValue
from headrace.registry.schema_ids import SchemaRef
from headrace.registry.state import RegistryState
from headrace.system.extras import MissingExtra

Path = tuple[int, ...]


class RecordNames(NamedTuple):
    """The names of records by path; `by_path` is whether the data has a path, else all names are at ()."""

    names: Mapping[Path, frozenset[str]]
    by_path: bool = False


def live_versions(state: RegistryState, ref: SchemaRef) -> list[SchemaValue]:
    """Return the live versions of all subjects that are this schema; an id is one of the default context."""
    found = state.versions_with_id(ref) if isinstance(ref, int) else state.versions_with_fingerprint(ref)
    return [version for version in found if not version.deleted]


def refs_of(state: RegistryState, subject: str) -> frozenset[SchemaRef]:
    """Return the ids and fingerprints of a subject's schemas."""
    versions = state.versions(subject)
    return frozenset[SchemaRef]((*(version.id for version in versions), *map(state.fingerprint_of, versions)))


def referenced(state: RegistryState, value: SchemaValue) -> dict[Reference, Schema]:
    """Return all schemas that a schema refers to, for threads that must not read the state."""
    library = Library(state)
    found: dict[Reference, Schema] = {}
    waiting = list(value.schema.references)
    while waiting and len(found) <= MAX_REFERENCES:
        reference = waiting.pop()
        if reference in found:
            continue
        try:
            found[reference] = library.resolved(value.subject, reference)
        except InvalidSchema:
            continue  # `names_of` reports a reference that is missing
        waiting += found[reference].references
    return found


def names_of(value: SchemaValue, references: Mapping[Reference, Schema]) -> RecordNames | str:
    """Return the names of a schema's records, or why they are unknown. For Protobuf this runs protoc."""

    def resolve(reference: Reference) -> Schema:
        if reference not in references:
            raise InvalidSchema(f"the reference {reference.name} is not registered")
        return references[reference]

    try:
        return record_names(value.schema, resolve)
    except (InvalidSchema, MissingExtra) as error:
        return str(error)


def record_names(schema: Schema, resolve: Resolve) -> RecordNames:
    """Return the names of a schema's records, none if it is not one of records; InvalidSchema if unreadable.

    Avro and JSON schemas have been validated before: only their name is read here.
    """
    match schema.type:
        case SchemaType.AVRO:
            name = _avro_name(load(schema.text))
        case SchemaType.JSON:
            root = load(schema.text)
            name = root["title"] if isinstance(root, dict) and isinstance(root.get("title"), str) else None
        case SchemaType.PROTOBUF:
            from headrace.registry.formats.protobuf.protobuf import ProtobufSchema  # noqa: PLC0415  slow to import

            parsed = parse(schema, resolve)
            assert isinstance(parsed, ProtobufSchema), parsed
            package = f"{parsed.file.package}." if parsed.file.package else ""
            names: dict[Path, set[str]] = {}
            # The serializer in Python counts map entries, that in Java does not.
            for with_entries in (True, False):
                for path, message in _walk(parsed.file.message_type, package, with_entries=with_entries):
                    names.setdefault(path, set()).add(message)
            return RecordNames({path: frozenset(several) for path, several in names.items()}, by_path=True)
    return RecordNames({} if name is None else {(): frozenset({name})})


def _avro_name(root: Any) -> str | None:
    match root:
        case str() if root not in PRIMITIVES:  # the name of a referenced type
            return root
        case {"type": "record" | "error", "name": str() as name, **more}:
            namespace = more.get("namespace")
            return name if "." in name or not namespace else f"{namespace}.{name}"
    return None


def _walk(messages: Sequence[Any], scope: str, *, with_entries: bool) -> Iterator[tuple[Path, str]]:
    """Yield every message except map entries, with its path."""
    waiting: list[tuple[Path, str, Sequence[Any]]] = [((), scope, messages)]
    while waiting:
        parent, scope, children = waiting.pop()
        counted = children if with_entries else [child for child in children if not child.options.map_entry]
        for index, message in enumerate(counted):
            if not message.options.map_entry:
                yield (*parent, index), f"{scope}{message.name}"
                waiting.append(((*parent, index), f"{scope}{message.name}.", message.nested_type))
