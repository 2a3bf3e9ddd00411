"""Parsing of a schema, with everything that it refers to.

The module of a format is imported with its first schema: each needs a library, and few users need all three.
"""

from collections.abc import Callable, Sequence

from headrace.registry.formats.limits import MAX_REFERENCES, MAX_TEXT_BYTES, MAX_TOTAL_BYTES
from headrace.registry.formats.schema import InvalidSchema, Parsed, Reference, Resolve, Schema, SchemaType
from headrace.system.extras import HTTP, importing


def parse(schema: Schema, resolve: Resolve) -> Parsed:
    """Return the schema parsed; `InvalidSchema` if it is not valid.

    `resolve` returns a referenced schema, or raises `InvalidSchema`. It is called once for each reference,
    including indirect ones.
    """
    _check_size("The schema", schema.text)
    references = _References(schema.type, resolve)
    references.follow(schema)
    try:
        return _parser(schema.type)(schema, references.found)
    except RecursionError as error:
        raise InvalidSchema("The schema, with everything that it refers to, is nested too deeply.") from error


def _parser(type_: SchemaType) -> Callable[[Schema, Sequence[tuple[str, Schema]]], Parsed]:
    """Return `parse` of the format's module; MissingExtra if its library is not installed."""
    with importing(HTTP, f"a schema in {type_}"):
        match type_:
            case SchemaType.AVRO:
                from headrace.registry.formats.avro import avro  # noqa: PLC0415

                return avro.parse
            case SchemaType.JSON:
                from headrace.registry.formats.json import schema as json_schema  # noqa: PLC0415

                return json_schema.parse
            case SchemaType.PROTOBUF:
                from headrace.registry.formats.protobuf import protobuf  # noqa: PLC0415

                return protobuf.parse


class _References:
    """Follows references: `found` has every referenced schema once, after those that it refers to itself.

    Of several references with one name the first counts: two schemas may import one file by two references.
    """

    def __init__(self, type_: SchemaType, resolve: Resolve) -> None:
        self._type = type_
        self._resolve = resolve
        self._done: dict[Reference, bool] = {}  # False while its own references are followed
        self._names: set[str] = set()
        self._bytes = 0
        self.found: list[tuple[str, Schema]] = []

    def follow(self, schema: Schema) -> None:
        """Follow all references depth first, without recursion: a chain of references may be long."""
        waiting = [iter(schema.references)]
        entered: list[tuple[Reference, Schema]] = []
        while waiting:
            reference = next(waiting[-1], None)
            if reference is None:
                waiting.pop()
                if entered:
                    done, other = entered.pop()
                    self._done[done] = True
                    self.found.append((done.name, other))
            elif reference.name not in self._names:
                other = self._resolved(reference)
                self._names.add(reference.name)
                self._done[reference] = False
                entered.append((reference, other))
                waiting.append(iter(other.references))
            elif not self._done.get(reference, True):
                raise InvalidSchema(f"The reference {reference.name!r} leads back to itself.")

    def _resolved(self, reference: Reference) -> Schema:
        if len(self._done) == MAX_REFERENCES:
            raise InvalidSchema(f"The schema refers to more than {MAX_REFERENCES} others.")
        other = self._resolve(reference)
        if other.type is not self._type:
            raise InvalidSchema(f"The reference {reference.name!r} has another format: {other.type}.")
        self._bytes += _check_size(f"The referenced schema {reference.name!r}", other.text)
        if self._bytes > MAX_TOTAL_BYTES:
            raise InvalidSchema(f"All referenced schemas together are larger than {MAX_TOTAL_BYTES} bytes.")
        return other


def _check_size(what: str, text: str) -> int:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidSchema(f"{what} contains half a surrogate pair, which UTF-8 cannot encode.") from error
    if size > MAX_TEXT_BYTES:
        raise InvalidSchema(f"{what} has {size} bytes; {MAX_TEXT_BYTES} are allowed.")
    return size
