"""REST proxy, v2: keys and values as bytes, by the schemas that a request names or brings along."""

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from headrace.http.gateway.encoding import BadValue
from headrace.http.gateway.schemas import INVALID, TYPES, SchemaCodec, Schemas, framed
from headrace.http.gateway.v2_records import ProduceV2, RecordV2
from headrace.http.problems import Problem

BAD_CONVERSION: Final = 42203
NO_KEY_SCHEMA, NO_VALUE_SCHEMA = 42201, 42202


class Encoded(NamedTuple):
    """Keys or values as bytes, and the id of their schema if they have one."""

    data: Sequence[bytes | None]
    schema_id: int | None = None


@dataclass(frozen=True, slots=True)
class Named:
    """The schema of keys or values, as a request names it."""

    subject: str
    text: str | None
    schema_id: int | None


def by_schema(
    schemas: Schemas, topic: str, embedded: str, asked: ProduceV2, records: Sequence[RecordV2]
) -> tuple[Encoded, Encoded]:
    """All keys and all values by their schemas, which are registered if they are new; waits for brokers.

    A Problem if one does not fit, or has no schema: then nothing is registered either.
    """
    key = Named(f"{topic}-key", asked.key_schema, asked.key_schema_id)
    value = Named(f"{topic}-value", asked.value_schema, asked.value_schema_id)
    key_codec, value_codec = _codec(schemas, embedded, key), _codec(schemas, embedded, value)
    keys = _encoded([each.key for each in records], key_codec, "key", NO_KEY_SCHEMA)
    values = _encoded([each.value for each in records], value_codec, "value", NO_VALUE_SCHEMA)
    return _framed(schemas, embedded, key, keys), _framed(schemas, embedded, value, values)


def _codec(schemas: Schemas, embedded: str, named: Named) -> SchemaCodec | None:
    """What writes by the schema that is meant, which is of the format that the content type says."""
    if named.schema_id is None:
        return None if named.text is None else schemas.by_text(embedded, named.text)
    codec = schemas.by_id(named.schema_id, named.subject)
    if codec.format != embedded:
        said = f"schema {named.schema_id} is {TYPES[codec.format]}, and the content type says {embedded}"
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, INVALID, said)
    return codec


def _encoded(values: Sequence[Any], codec: SchemaCodec | None, what: str, code: int) -> list[bytes | None]:
    if codec is None:
        if any(value is not None for value in values):
            said = f"there are {what}s, and neither {what}_schema nor {what}_schema_id"
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, code, said)
        return [None] * len(values)
    places = [number for number, value in enumerate(values) if value is not None]
    encoded: list[bytes | None] = [None] * len(values)
    try:
        for number, data in zip(places, codec.encode([values[number] for number in places]), strict=True):
            encoded[number] = data
    except BadValue as error:
        said = f"the {what} of record {places[error.place]}: {error}"
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, BAD_CONVERSION, said) from None
    return encoded


def _framed(schemas: Schemas, embedded: str, named: Named, data: Sequence[bytes | None]) -> Encoded:
    schema_id = named.schema_id
    if schema_id is None and named.text is not None:
        schema_id = schemas.registered(named.subject, embedded, named.text).id
    if schema_id is None:
        return Encoded(data)
    return Encoded([None if each is None else framed(schema_id, each) for each in data], schema_id)
