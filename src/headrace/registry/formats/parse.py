"""From a schema as given to one that is understood, with everything that it refers to.

What understands a format is imported for the first schema in it: each has a library, and few need all three.
"""

from headrace.registry.formats.limits import MAX_REFERENCES, MAX_TEXT_BYTES, MAX_TOTAL_BYTES
from headrace.registry.formats.schema import InvalidSchema, Parsed, Reference, Resolve, Schema, SchemaType


def parse(schema: Schema, resolve: Resolve) -> Parsed:
    """The schema, understood; `InvalidSchema` if it is none.

    `resolve` gives a referenced schema, or raises `InvalidSchema` if there is none; it is asked for what
    that one refers to as well, each once.
    """
    _check_size("The schema", schema.text)
    referenced = _Following(schema.type, resolve)
    referenced.follow(schema)
    try:
        match schema.type:
            case SchemaType.AVRO:
                from headrace.registry.formats import avro  # noqa: PLC0415

                return avro.parse(schema, referenced.found)
            case SchemaType.JSON:
                from headrace.registry.formats import json_schema  # noqa: PLC0415

                return json_schema.parse(schema, referenced.found)
            case SchemaType.PROTOBUF:
                from headrace.registry.formats import protobuf  # noqa: PLC0415

                return protobuf.parse(schema, referenced.found)
    except RecursionError as error:
        raise InvalidSchema("The schema, with what it refers to, is nested too deeply.") from error


class _Following:
    """Follows references: `found` has every referenced schema once, after those that it refers to itself.

    Of several that have one name, the first is meant: two schemas may import the same file by two references.
    """

    def __init__(self, type_: SchemaType, resolve: Resolve) -> None:
        self._type = type_
        self._resolve = resolve
        self._seen: dict[Reference, bool] = {}  # whether it is found already, or still being followed
        self._names: set[str] = set()
        self._bytes = 0
        self.found: list[tuple[str, Schema]] = []

    def follow(self, schema: Schema) -> None:
        """Depth first, without recursion: a chain of references may be long."""
        waiting = [iter(schema.references)]
        entered: list[tuple[Reference, Schema]] = []
        while waiting:
            reference = next(waiting[-1], None)
            if reference is None:
                waiting.pop()
                if entered:
                    done, other = entered.pop()
                    self._seen[done] = True
                    self.found.append((done.name, other))
            elif reference.name not in self._names:
                other = self._one(reference)
                self._names.add(reference.name)
                self._seen[reference] = False
                entered.append((reference, other))
                waiting.append(iter(other.references))
            elif not self._seen.get(reference, True):
                raise InvalidSchema(f"The reference {reference.name!r} leads back to itself.")

    def _one(self, reference: Reference) -> Schema:
        if len(self._seen) == MAX_REFERENCES:
            raise InvalidSchema(f"The schema refers to more than {MAX_REFERENCES} others.")
        other = self._resolve(reference)
        if other.type is not self._type:
            raise InvalidSchema(f"The reference {reference.name!r} is of another format: {other.type}.")
        self._bytes += _check_size(f"The referenced schema {reference.name!r}", other.text)
        if self._bytes > MAX_TOTAL_BYTES:
            raise InvalidSchema(f"What the schema refers to is larger than {MAX_TOTAL_BYTES} bytes together.")
        return other


def _check_size(what: str, text: str) -> int:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidSchema(f"{what} holds half a character: a surrogate without its other half.") from error
    if size > MAX_TEXT_BYTES:
        raise InvalidSchema(f"{what} has {size} bytes; {MAX_TEXT_BYTES} are allowed.")
    return size
