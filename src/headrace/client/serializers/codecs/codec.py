"""Codecs of schemas: they encode and decode what comes after the schema's id in a record."""

import io
import json
from functools import cached_property
from struct import error as StructError  # noqa: N812
from typing import Any, Final

import fastavro
import jsonschema_rs
from fastavro.schema import SchemaParseException, UnknownType

from headrace.client.serializers.codecs.avro_cost import cost_of
from headrace.client.serializers.codecs.avro_json import AvroJson
from headrace.client.serializers.codecs.avro_leaves import Misfit, check_leaf
from headrace.client.serializers.codecs.base import BadValue, Codec, dotted
from headrace.client.serializers.codecs.plain_json import NotJson, read_json, store_json, write_json
from headrace.client.serializers.codecs.protobuf import ProtobufCodec
from headrace.registry.formats import Parsed
from headrace.registry.formats.avro.avro import AvroSchema
from headrace.registry.formats.json.keywords import draft_of
from headrace.registry.formats.json.resources import ResolutionScope
from headrace.registry.formats.json.schema import JsonSchema
from headrace.registry.formats.limits import MAX_EXPANSION
from headrace.registry.formats.protobuf.protobuf import ProtobufSchema

_FASTAVRO_ERRORS: Final = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    RecursionError,
    StructError,
    TypeError,
    ValueError,
)
"""What fastavro raises for values and bytes that do not fit a schema."""
_BASE: Final = "json-schema:///"  # the base of relative names of documents


def codec_of(schema: Parsed) -> Codec:
    """Return the codec of a schema; raise BadValue if the schema cannot be used to encode."""
    if isinstance(schema, AvroSchema):
        return AvroCodec(schema)
    if isinstance(schema, JsonSchema):
        return JsonCodec(schema)
    assert isinstance(schema, ProtobufSchema), schema
    return ProtobufCodec(schema)


class AvroCodec(Codec):
    """Avro. Values may be Avro's JSON encoding, with unions as {"string": "x"}, or plain JSON."""

    format = "avro"

    def __init__(self, schema: AvroSchema) -> None:
        try:
            self._schema = fastavro.parse_schema(json.loads(schema.formatted("resolved")))
        except (SchemaParseException, UnknownType) as error:
            raise BadValue(f"the schema cannot be used here: {error}") from None
        self._json, self._numbers = AvroJson(self._schema), AvroJson(self._schema, numbers=True)
        self._encoding = AvroJson(self._schema, read_leaf=check_leaf)
        self._cost = cost_of(schema.root)

    def is_linear(self, data: bytes) -> bool:
        return self._cost.is_linear(data)

    @property
    def name(self) -> str:
        return str(self._schema.get("name", "")) if isinstance(self._schema, dict) else ""

    def encode(self, value: Any) -> bytes:
        try:
            fitting = self._fitting(value)
        except _FASTAVRO_ERRORS as error:
            if not self._fits(value):
                raise self._misfit(value, error) from None
            fitting = value
        return self._written(fitting, value)

    def encode_plain(self, value: Any, message: str = "") -> bytes:
        del message  # a schema is of one type
        try:
            fitting = self._json.read(value)
        except _FASTAVRO_ERRORS as error:
            raise BadValue(f"this does not fit the Avro schema: {error}") from None
        return self._written(fitting, value)

    def _written(self, fitting: Any, value: Any) -> bytes:
        written = io.BytesIO()
        try:
            fastavro.schemaless_writer(written, self._schema, fitting)
        except _FASTAVRO_ERRORS as error:
            raise self._misfit(value, error) from None
        return written.getvalue()

    def _fitting(self, value: Any) -> Any:
        """Return a value of Avro's JSON encoding as fastavro's Python value."""
        text = write_json(value).decode()
        (found,) = fastavro.json_reader(io.StringIO(text), self._schema)
        self._encoding.read(value)  # fastavro takes a string for a record with one field
        if not self._fits(found):
            raise ValueError(f"{text[:100]} is of another type")
        return found

    def _misfit(self, value: Any, error: Exception) -> BadValue:
        """Return an error that names the field; fastavro's message does not."""
        try:
            self._encoding.read(value)
        except (Misfit, RecursionError) as misfit:
            error = misfit
        return BadValue(f"this does not fit the Avro schema: {error}")

    def _fits(self, value: Any) -> bool:
        try:
            return bool(fastavro.validate(value, self._schema, raise_errors=False))
        except _FASTAVRO_ERRORS:
            return False

    def decode(self, data: bytes, *, tagged: bool = False, numbers: bool = False) -> Any:
        stream = io.BytesIO(data)
        try:
            value = fastavro.schemaless_reader(stream, self._schema, None, return_named_type=not tagged)
            if stream.read(1):
                raise BadValue("there are bytes after the value")
            if not tagged:
                return (self._numbers if numbers else self._json).show(value)
            written = io.StringIO()
            fastavro.json_writer(written, self._schema, [value])
            return read_json(written.getvalue())
        except _FASTAVRO_ERRORS as error:
            raise BadValue(f"this does not fit the Avro schema: {error}") from None


class JsonCodec(Codec):
    """JSON that a JSON schema validates before it is encoded."""

    format = "jsonschema"

    def __init__(self, schema: JsonSchema) -> None:
        if schema.resources.expansion() > MAX_EXPANSION:
            raise BadValue(
                f"the schema cannot be used here: with its references it has more than {MAX_EXPANSION:,} "
                "subschemas for one value"
            )
        self._schema = schema

    @property
    def name(self) -> str:
        root = self._schema.root
        return str(root.get("title", "")) if isinstance(root, dict) else ""

    @cached_property
    def _validator(self) -> Any:
        root = self._schema.root
        scope = ResolutionScope("", draft_of(root))

        def retrieve(uri: str) -> Any:
            return self._schema.resources.target(uri.removeprefix(_BASE), scope)

        return jsonschema_rs.validator_for(root, retriever=retrieve)

    def encode(self, value: Any) -> bytes:
        try:
            self._validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            raise BadValue(f"this does not fit the JSON schema: {_why_not_json(error)}") from None
        except ValueError as error:
            raise BadValue(f"the JSON schema cannot be used: {error}") from None
        try:
            return store_json(value)
        except NotJson as error:
            raise BadValue(str(error)) from None

    def decode(self, data: bytes, *, tagged: bool = False, numbers: bool = False) -> Any:
        del tagged, numbers  # there is no other encoding
        try:
            return read_json(data)
        except NotJson as error:
            raise BadValue(f"this is not JSON: {error}") from None


def _why_not_json(error: jsonschema_rs.ValidationError) -> str:
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Required):
        return f"the field {dotted([*error.instance_path, error.kind.property])} is missing"
    at = f"the field {dotted(error.instance_path)}: " if error.instance_path else ""
    return f"{at}{error.message}"
