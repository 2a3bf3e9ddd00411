"""Keys and values of records by the schemas of a registry: decoded as JSON, and encoded from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from headrace.client.errors import ClientError
from headrace.client.schemas.registry import Registered, RegistryClient, RegistryError
from headrace.registry.formats import InvalidSchema, Parsed, Reference, Schema, SchemaType, parse
from headrace.registry.schema_ids import NoSchemaId, SchemaRef, format_ref, read_schema_id

if TYPE_CHECKING:
    from headrace.client.serializers.codecs.base import Codec
    from headrace.client.serializers.codecs.processes import CodecProcesses

KEPT: Final = 1000  # codecs, and ids without a codec
_NOT_FOUND: Final = range(40400, 40500)  # the registry's error codes for a subject, version or id

Headers = Sequence[tuple[str, bytes | None]]


class NotDecodable(ClientError):
    """The data names a schema, and cannot be decoded by it; the message says why."""


class NotEncodable(ClientError):
    """A value does not fit the schema of its subject; the message names the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A key or value as JSON, and the schema that it was decoded by."""

    value: Any
    schema_id: int
    message: str = ""  # the full name of a Protobuf message


@dataclass(frozen=True, kw_only=True)
class _SchemaCodec:
    """The codec of a schema, and the schema itself, with all that it refers to."""

    registered: Registered
    parsed: Parsed
    schema: Schema
    others: Mapping[Reference, Schema] = field(default_factory=dict)

    @cached_property
    def codec(self) -> "Codec":
        from headrace.client.serializers.codecs.codec import codec_of  # noqa: PLC0415  three libraries

        return codec_of(self.parsed)


class RecordSchemas:
    """Decodes and encodes by one registry; each schema is read once. For one thread.

    Unreachable is raised if the registry does not answer, and ImportError if the library of a format is not
    installed.
    """

    def __init__(self, registry: RegistryClient) -> None:
        self.registry = registry
        self._codecs: dict[SchemaRef, _SchemaCodec | str] = {}  # a text says why there is none
        self._latest: dict[str, _SchemaCodec | None] = {}

    # -- decoding ------------------------------------------------------------------------------

    def decode(self, part: str, data: bytes, headers: Headers = ()) -> Decoded | None:
        """Return a record's "key" or "value" as JSON; None if it does not name a schema.

        NotDecodable is raised if the registry does not know the schema, or the data does not fit it.
        """
        encoded = [(name.encode(), value) for name, value in headers]
        try:
            ref, source, end = read_schema_id(part, data, encoded)
        except NoSchemaId:
            return None
        body = source[end:] if source is data else source[end:] + data
        if ref not in self._codecs:
            if len(self._codecs) >= KEPT:
                self._codecs.clear()
            self._codecs[ref] = self._read(ref)
        found = self._codecs[ref]
        if isinstance(found, str):
            raise NotDecodable(found)
        try:
            message = found.codec.message_name(body)
            value = self._decoded(found, body)
            return Decoded(value=value, schema_id=found.registered.id, message=message)
        except ValueError as error:
            raise NotDecodable(f"schema {format_ref(ref)} does not fit: {error}") from None

    def _decoded(self, by: _SchemaCodec, data: bytes) -> Any:
        if by.codec.is_linear(data):
            return by.codec.decode(data)
        key = repr(by.schema).encode("utf-8", "surrogatepass")
        return self._processes.decode(key, (by.schema, by.others), data, tagged=False)

    @cached_property
    def _processes(self) -> "CodecProcesses":
        """Worker processes for values whose cost is not known before; they end with this process."""
        from headrace.client.serializers.codecs.processes import CodecProcesses  # noqa: PLC0415

        return CodecProcesses()

    def _read(self, ref: SchemaRef) -> _SchemaCodec | str:
        try:
            by_id = (
                self.registry.by_id(ref)
                if isinstance(ref, int)
                else self.registry.by_guid(str(UUID(bytes=ref)))
            )
            return self._parsed(by_id)
        except RegistryError as error:
            return f"schema {format_ref(ref)} cannot be read from {self.registry.url}: {error}"
        except (InvalidSchema, ValueError) as error:
            return f"schema {format_ref(ref)} cannot be used: {error}"

    # -- encoding ------------------------------------------------------------------------------

    def has_subject(self, subject: str) -> bool:
        """Return whether the registry has a schema for values of this subject."""
        return self._of_subject(subject) is not None

    def encode(self, subject: str, value: Any, message: str = "") -> bytes:
        """Return a value, which is JSON as `decode` returns it, by the latest version of the subject.

        `message` is the full name of a Protobuf message; by default it is the first of the schema.
        NotEncodable is raised if the value does not fit.
        """
        found = self._of_subject(subject)
        assert found is not None, subject
        try:
            data = found.codec.encode_plain(value, message)
        except ValueError as error:
            version = f"{subject} version {found.registered.version}"
            raise NotEncodable(f"{error} ({version})") from None
        return b"\0" + found.registered.id.to_bytes(4) + data

    def _of_subject(self, subject: str) -> _SchemaCodec | None:
        if subject not in self._latest:
            try:
                self._latest[subject] = self._parsed(self.registry.get(subject))
            except RegistryError as error:
                if error.code not in _NOT_FOUND:
                    raise
                self._latest[subject] = None
            except InvalidSchema as error:
                raise NotEncodable(f"the schema of {subject} cannot be used: {error}") from None
        return self._latest[subject]

    # -- schemas -------------------------------------------------------------------------------

    def _parsed(self, registered: Registered) -> _SchemaCodec:
        others: dict[Reference, Schema] = {}

        def resolve(reference: Reference) -> Schema:
            try:
                others[reference] = schema_of(
                    self.registry.get(reference.subject, reference.version, deleted=True)
                )
            except RegistryError as error:
                raise InvalidSchema(f"the reference {reference.name} cannot be resolved: {error}") from error
            return others[reference]

        schema = schema_of(registered)
        return _SchemaCodec(
            registered=registered, parsed=parse(schema, resolve), schema=schema, others=others
        )


def schema_of(registered: Registered) -> Schema:
    """Return a registered schema without its id and subject; InvalidSchema if its format is unknown."""
    if registered.type not in set(SchemaType):
        raise InvalidSchema(f"its format is {registered.type}, expected one of {', '.join(SchemaType)}")
    references = (Reference(other.name, other.subject, other.version) for other in registered.references)
    return Schema(SchemaType(registered.type), registered.schema, tuple(references))
