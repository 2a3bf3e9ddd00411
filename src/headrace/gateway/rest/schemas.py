"""Records encoded by schemas of the registry: a zero byte, the schema's id in four bytes, the value.

Calls may wait for brokers, so they are for threads.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from operator import attrgetter
from struct import Struct
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from cachetools import LRUCache, TTLCache, cachedmethod

from headrace.client.errors import ClientError
from headrace.client.serializers.codecs.base import BadValue, TooCostly
from headrace.client.serializers.codecs.processes import CodecProcesses, NoProcess, TooLarge
from headrace.gateway.problems import Problem
from headrace.gateway.registry.registry import SchemaRegistry
from headrace.gateway.registry.rights import DESCRIBE, WRITE, SubjectRights
from headrace.gateway.rest.values import ID_BYTES, MAGIC, Decoded
from headrace.registry.formats import InvalidSchema, Parsed, Reference, Schema, SchemaType, parse
from headrace.registry.record_names import referenced
from headrace.registry.records import SchemaValue
from headrace.registry.refusals import Incompatible, Invalid, Refusal
from headrace.registry.registration import SubmittedSchema

if TYPE_CHECKING:
    from headrace.client.serializers.codecs.base import Codec

KEPT: Final = 1000  # codecs by id, and unknown ids
KEPT_BY_TEXT: Final = 20  # codecs of schemas in requests: a batch has the same again and again
UNKNOWN_S: Final = 5.0  # for which an unknown id is not looked up again
COSTLY: Final = 1000  # values of a schema that were too costly to decode, and are not tried again
INVALID: Final = 42205
NO_PROCESS: Final = 50302
TYPES: Final = {"avro": SchemaType.AVRO, "jsonschema": SchemaType.JSON, "protobuf": SchemaType.PROTOBUF}
_HEAD: Final = Struct(">bI")


class SchemaCodec:
    """Encodes and decodes by one schema: in a worker process if the cost cannot be known in advance."""

    def __init__(
        self,
        codec: "Codec",
        schema: Schema,
        others: Mapping[Reference, Schema],
        processes: CodecProcesses,
        max_bytes: int,
    ) -> None:
        """`others` are the references of `schema`; values encoded together have `max_bytes` at most."""
        self.format = codec.format
        self._codec = codec
        self._spec = schema, others
        self._key = sha256(repr(self._spec).encode("utf-8", "surrogatepass")).digest()
        self._processes = processes
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._costly: LRUCache[bytes, None] = LRUCache(COSTLY)  # digests of values

    def encode(self, values: Sequence[Any], *, plain: bool = False) -> list[bytes]:
        """Return every value as bytes; raise BadValue if one does not fit, a Problem (413) if too large.

        With `plain` they are JSON as `decode` returns it, not `tagged`.
        """
        try:
            return self._processes.encode(self._key, self._spec, values, self._max_bytes, plain=plain)
        except TooLarge as error:
            raise Problem(413, str(error)) from None
        except NoProcess as error:
            raise Problem(NO_PROCESS, str(error)) from None

    def decode(self, data: bytes, *, tagged: bool = False, numbers: bool = False) -> Any:
        """Return the value; raise BadValue if the bytes do not fit the schema, or TooCostly."""
        if self._codec.is_linear(data):
            return self._codec.decode(data, tagged=tagged, numbers=numbers)
        digest = sha256(data).digest()
        if digest in self._costly:
            raise TooCostly("decoding this took too much CPU time or memory before")
        try:
            return self._processes.decode(self._key, self._spec, data, tagged=tagged, numbers=numbers)
        except TooCostly:
            with self._lock:
                self._costly[digest] = None
            raise
        except NoProcess as error:
            raise Problem(NO_PROCESS, str(error)) from None


class Schemas:
    """The codecs of the registry's schemas, as far as a user may read them."""

    def __init__(
        self, registry: SchemaRegistry, processes: CodecProcesses, max_bytes: int, rights: SubjectRights
    ) -> None:
        self._registry = registry
        self._rights = rights
        self._processes = processes
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._codecs: LRUCache[Any, SchemaCodec] = LRUCache(KEPT)
        self._by_text: LRUCache[Any, SchemaCodec] = LRUCache(KEPT_BY_TEXT)
        self._unknown: TTLCache[int, None] = TTLCache(KEPT, UNKNOWN_S)

    def show(self, data: bytes, *, numbers: bool = False) -> Decoded | None:
        """Return data decoded by the schema whose id is in it, or None if that is not possible.

        With `numbers`, decimals and long integers are numbers and not text.
        """
        schema_id = schema_id_of(data)
        codec = None if schema_id is None else self._known(schema_id)
        if codec is None:
            return None
        try:
            value = codec.decode(data[ID_BYTES:], numbers=numbers)
            return Decoded(value=value, encoding=codec.format, schema_id=schema_id)
        except BadValue:
            return None

    def read(self, data: bytes | None) -> Any:
        """Return the value in the REST proxy's JSON; raise BadValue if it was not encoded by a schema."""
        if data is None:
            return None
        schema_id = schema_id_of(data)
        if schema_id is None:
            raise BadValue("it does not begin with the id of a schema")
        codec = self._known(schema_id)
        if codec is None:
            raise BadValue(f"there is no schema {schema_id}")
        return codec.decode(data[ID_BYTES:], tagged=True)

    def _known(self, schema_id: int) -> SchemaCodec | None:
        with self._lock:
            if schema_id in self._unknown:
                return None
        try:
            if self._rights.restricts:  # a record may name any id, and its decoded value shows the schema
                self._rights.check_schema(self._registry.by_id(schema_id))
            return self._codec(schema_id)
        except (Refusal, Problem, ClientError):
            with self._lock:
                self._unknown[schema_id] = None
            return None

    def by_id(self, schema_id: int, subject: str) -> SchemaCodec:
        """Return the codec of a schema that is registered for the subject; raise a Problem if it is not."""
        self._rights.check(DESCRIBE, subject)
        with _as_problem():
            self._registry.of_subject(schema_id, subject)
            return self._codec(schema_id)

    @cachedmethod(attrgetter("_by_text"), lock=attrgetter("_lock"))
    def by_text(self, embedded: str, text: str) -> SchemaCodec:
        """Return the codec of a schema that may not be registered yet; raise a Problem if it is invalid."""
        schema = Schema(TYPES[embedded], text)
        try:
            return self._make(parse(schema, _no_reference), schema, {})
        except (InvalidSchema, BadValue) as error:
            raise Problem(INVALID, str(error)) from None

    def registered(self, subject: str, embedded: str, text: str) -> SchemaValue:
        """Return the schema's version of the subject, which is registered if it is new."""
        self._rights.check(WRITE, subject)
        with _as_problem():
            return self._registry.register(subject, SubmittedSchema(Schema(TYPES[embedded], text)))

    def version(self, subject: str, version: int | None) -> SchemaValue:
        self._rights.check(DESCRIBE, subject)
        with _as_problem():
            if version is None:
                return self._registry.latest(subject)
            return self._registry.ask(
                lambda state, _: state.version(state.settings.resolve_alias(subject), version)
            )

    @cachedmethod(attrgetter("_codecs"), lock=attrgetter("_lock"))
    def _codec(self, schema_id: int) -> SchemaCodec:
        """Return the codec of a schema; raise a Refusal if there is none."""
        value = self._registry.by_id(schema_id)
        others = self._registry.recall(lambda state, _: referenced(state, value))
        try:
            return self._make(self._registry.understood(value), value.schema, others)
        except BadValue as error:
            raise Invalid(str(error)) from None

    def _make(self, parsed: Parsed, schema: Schema, others: Mapping[Reference, Schema]) -> SchemaCodec:
        from headrace.client.serializers.codecs.codec import codec_of  # noqa: PLC0415  three libraries that few need

        return SchemaCodec(codec_of(parsed), schema, others, self._processes, self._max_bytes)


def framed(schema_id: int, data: bytes) -> bytes:
    """Return data with the id of its schema before it, as records have it."""
    return _HEAD.pack(MAGIC, schema_id) + data


def _no_reference(reference: Reference) -> Schema:
    raise InvalidSchema(f"only a registered schema can have references, such as {reference.name}")


@contextmanager
def _as_problem() -> Iterator[None]:
    """Turn the registry's refusals into Problems with the REST proxy's error codes."""
    try:
        yield
    except Incompatible as error:
        raise Problem(409, str(error)) from None
    except Refusal as error:
        raise Problem(INVALID, str(error)) from None


def schema_id_of(data: bytes) -> int | None:
    """Return the schema id that data begins with; None if it does not begin with one."""
    if len(data) < ID_BYTES or data[0] != MAGIC:
        return None
    return int(_HEAD.unpack_from(data)[1])
