"""Records that are written by schemas of the registry: a zero byte, the schema's id in four, the value.

What is here may wait for brokers: it is for threads.
"""

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from http import HTTPStatus
from struct import Struct
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from headrace.client.errors import ClientError
from headrace.http.gateway.codec_processes import CodecProcesses, TooLarge
from headrace.http.gateway.codec_worker import spec_of
from headrace.http.gateway.decoding import ID_BYTES, MAGIC, Decoded
from headrace.http.gateway.encoding import BadValue, TooCostly
from headrace.http.problems import Problem
from headrace.http.registry.registry import Registry
from headrace.registry.formats import InvalidSchema, Parsed, Reference, Schema, SchemaType, parse
from headrace.registry.record_names import referenced
from headrace.registry.records import SchemaValue
from headrace.registry.refusals import Incompatible, Invalid, Refusal

if TYPE_CHECKING:
    from headrace.http.gateway.codecs import Codec

KEPT: Final = 1000  # codecs, and ids that are no schema's
KEPT_BY_TEXT: Final = 20  # codecs of schemas that records bring along: a batch has the same again and again
STRANGE_S: Final = 5.0  # how long an id that is no schema's is not asked for again
COSTLY: Final = 1000  # values whose reading was too costly, and is not tried again
INVALID: Final = 42205
TYPES: Final = {"avro": SchemaType.AVRO, "jsonschema": SchemaType.JSON, "protobuf": SchemaType.PROTOBUF}
_HEAD: Final = Struct(">bI")


class SchemaCodec:
    """Writes and reads by one schema: in a process where the cost cannot be told in advance."""

    def __init__(
        self,
        codec: "Codec",
        schema: Schema,
        others: Mapping[Reference, Schema],
        processes: CodecProcesses,
        most_bytes: int,
    ) -> None:
        """`others` are what the schema refers to; values encoded together have `most_bytes` at most."""
        self.format = codec.format
        self._codec = codec
        self._spec = spec_of(schema, others)
        self._key = sha256(repr(self._spec).encode("utf-8", "surrogatepass")).digest()
        self._processes = processes
        self._most_bytes = most_bytes
        self._costly: OrderedDict[bytes, None] = OrderedDict()  # digests of values

    def encode(self, values: Sequence[Any]) -> list[bytes]:
        """Every value; BadValue if one does not fit, a Problem if all of them are too large together."""
        try:
            return self._processes.encode(self._key, self._spec, values, self._most_bytes)
        except TooLarge as error:
            raise Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, 413, str(error)) from None

    def decode(self, data: bytes, *, tagged: bool = False) -> Any:
        """The value; BadValue if the bytes are none. Bytes that were too costly once are not tried again."""
        if self._codec.is_linear(data):
            return self._codec.decode(data, tagged=tagged)
        digest = sha256(data).digest()
        if digest in self._costly:
            raise TooCostly("this took too much time or memory by its schema before")
        try:
            return self._processes.decode(self._key, self._spec, data, tagged=tagged)
        except TooCostly:
            self._costly[digest] = None
            if len(self._costly) > COSTLY:
                self._costly.popitem(last=False)
            raise


class Schemas:
    """The registry's schemas, as what writes and reads by them."""

    def __init__(self, registry: Registry, processes: CodecProcesses, most_bytes: int) -> None:
        self._registry = registry
        self._processes = processes
        self._most_bytes = most_bytes
        self._lock = Lock()
        self._codecs: OrderedDict[int, SchemaCodec] = OrderedDict()
        self._by_text: OrderedDict[Schema, SchemaCodec] = OrderedDict()
        self._strange: OrderedDict[int, float] = OrderedDict()  # until when

    # -- reading -------------------------------------------------------------------------------

    def show(self, data: bytes) -> Decoded | None:
        """What bytes say by the schema whose id is in them; None if there is none, or they say nothing."""
        schema_id = _id_of(data)
        if schema_id is None:
            return None
        codec = self._known(schema_id)
        if codec is None:
            return None
        try:
            value = codec.decode(data[ID_BYTES:])
        except BadValue:
            return None
        return Decoded(value=value, encoding=codec.format, schema_id=schema_id)

    def read(self, data: bytes | None) -> Any:
        """The value, as the REST proxy has it; BadValue if it was not written by a schema."""
        if data is None:
            return None
        schema_id = _id_of(data)
        if schema_id is None:
            raise BadValue("it does not begin with the id of a schema")
        codec = self._known(schema_id)
        if codec is None:
            raise BadValue(f"there is no schema {schema_id}")
        return codec.decode(data[ID_BYTES:], tagged=True)

    def _known(self, schema_id: int) -> SchemaCodec | None:
        now_s = time.monotonic()
        with self._lock:
            if schema_id in self._codecs:
                self._codecs.move_to_end(schema_id)
                return self._codecs[schema_id]
            if self._strange.get(schema_id, now_s) > now_s:
                return None
        try:
            return self.codec(schema_id)
        except (Refusal, Problem, ClientError):
            with self._lock:
                self._strange[schema_id] = now_s + STRANGE_S
                if len(self._strange) > KEPT:
                    self._strange.popitem(last=False)
            return None

    # -- writing -------------------------------------------------------------------------------

    def by_id(self, schema_id: int, subject: str) -> SchemaCodec:
        """What writes by a schema that is the subject's; a Problem if it is not."""
        try:
            self._registry.of_subject(schema_id, subject)
            return self.codec(schema_id)
        except Refusal as error:
            raise as_problem(error) from None

    def by_text(self, embedded: str, text: str) -> SchemaCodec:
        """What writes by a schema that nobody may have registered yet; a Problem if it is none."""
        schema = Schema(TYPES[embedded], text)
        with self._lock:
            found = self._by_text.get(schema)
        if found is not None:
            return found
        try:
            found = self._made(parse(schema, _no_reference), schema, {})
        except (InvalidSchema, BadValue) as error:
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, INVALID, str(error)) from None
        with self._lock:
            self._by_text[schema] = found
            if len(self._by_text) > KEPT_BY_TEXT:
                self._by_text.popitem(last=False)
        return found

    def registered(self, subject: str, embedded: str, text: str) -> SchemaValue:
        """The schema as a version of the subject, which it becomes if it is none."""
        try:
            return self._registry.register(subject, Schema(TYPES[embedded], text))
        except Refusal as error:
            raise as_problem(error) from None

    def version(self, subject: str, version: int | None) -> SchemaValue:
        """A version of a subject, or its newest."""
        try:
            if version is None:
                return self._registry.latest(subject)
            return self._registry.ask(
                lambda state, _: state.version(state.settings.resolve_alias(subject), version)
            )
        except Refusal as error:
            raise as_problem(error) from None

    def codec(self, schema_id: int) -> SchemaCodec:
        """What writes and reads by a schema; a Refusal if there is none."""
        with self._lock:
            found = self._codecs.get(schema_id)
        if found is None:
            value = self._registry.by_id(schema_id)
            others = self._registry.recall(lambda state, _: referenced(state, value))
            try:
                found = self._made(self._registry.understood(value), value.schema, others)
            except BadValue as error:
                raise Invalid(str(error)) from None
            with self._lock:
                self._codecs[schema_id] = found
                if len(self._codecs) > KEPT:
                    self._codecs.popitem(last=False)
        return found

    def _made(self, parsed: Parsed, schema: Schema, others: Mapping[Reference, Schema]) -> SchemaCodec:
        from headrace.http.gateway.codecs import codec_of  # noqa: PLC0415  three libraries, for who has schemas

        return SchemaCodec(codec_of(parsed), schema, others, self._processes, self._most_bytes)


def framed(schema_id: int, data: bytes) -> bytes:
    """What a record has: the id of the schema, and what was written by it."""
    return _HEAD.pack(MAGIC, schema_id) + data


def _no_reference(reference: Reference) -> Schema:
    raise InvalidSchema(f"{reference.name} is referred to, which only a registered schema can do")


def as_problem(error: Refusal) -> Problem:
    """A registry's refusal, in the REST proxy's numbers."""
    if isinstance(error, Incompatible):
        return Problem(HTTPStatus.CONFLICT, 409, str(error))
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, INVALID, str(error))


def _id_of(data: bytes) -> int | None:
    if len(data) < ID_BYTES or data[0] != MAGIC:
        return None
    return int(_HEAD.unpack_from(data)[1])
