"""REST proxy, v2: keys and values as bytes, by the schemas that a request names or brings along."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

from headrace.http.gateway.schemas import TYPES, Schemas, as_problem
from headrace.http.gateway.v2_records import ProduceV2
from headrace.http.problems import Problem
from headrace.registry.refusals import Refusal

BAD_PAYLOAD, BAD_CONVERSION = 42206, 42203
NO_KEY_SCHEMA, NO_VALUE_SCHEMA, INVALID_SCHEMA = 42201, 42202, 42205

Encode = Callable[[Any], bytes | None]


@dataclass(frozen=True, slots=True)
class Encoders:
    """What writes keys and values; `refusal` is the number for what it cannot write."""

    key: Encode
    value: Encode
    key_schema_id: int | None = None
    value_schema_id: int | None = None
    refusal: int = BAD_PAYLOAD


def by_schema(schemas: Schemas, topic: str, embedded: str, asked: ProduceV2) -> Encoders:
    """Encoders by the schemas of `asked`, which are registered if they are new; waits for brokers.

    A Problem if records have keys or values, and there is no schema for them.
    """
    if any(each.key is not None for each in asked.records) and not (asked.key_schema or asked.key_schema_id):
        raise _missing(NO_KEY_SCHEMA, "keys, and no key_schema or key_schema_id")
    has_values = any(each.value is not None for each in asked.records)
    if has_values and not (asked.value_schema or asked.value_schema_id):
        raise _missing(NO_VALUE_SCHEMA, "values, and no value_schema or value_schema_id")
    key_id = _schema_id(schemas, f"{topic}-key", embedded, asked.key_schema, asked.key_schema_id)
    value_id = _schema_id(schemas, f"{topic}-value", embedded, asked.value_schema, asked.value_schema_id)
    return Encoders(
        partial(_write, schemas, key_id), partial(_write, schemas, value_id), key_id, value_id, BAD_CONVERSION
    )


def _missing(code: int, what: str) -> Problem:
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, code, f"there are {what}")


def _schema_id(
    schemas: Schemas, subject: str, embedded: str, text: str | None, schema_id: int | None
) -> int | None:
    """The id of the schema that is meant, which is of the format that the content type says."""
    if schema_id is None and text is None:
        return None
    if schema_id is None:
        schema_id = schemas.registered(subject, embedded, text or "").id
    try:
        codec = schemas.codec(schema_id)
    except Refusal as error:
        raise as_problem(error) from None
    if codec.format != embedded:
        said = f"schema {schema_id} is {TYPES[codec.format]}, and the content type says {embedded}"
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, INVALID_SCHEMA, said)
    return schema_id


def _write(schemas: Schemas, schema_id: int | None, value: Any) -> bytes | None:
    if schema_id is None:
        assert value is None, value
        return None
    return None if value is None else schemas.write(schema_id, value)
