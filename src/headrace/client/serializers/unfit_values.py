"""Why a value does not fit its schema: the field that is missing, with its path.

Avro's encoder names a missing field without its path, and JSON Schema's validator speaks of a required
property. All formats get the same sentence here: the field lines[2].amount is missing.
"""

from collections.abc import Sequence
from typing import Any

from headrace.client.serializers.codecs.avro_misfit import missing_field
from headrace.client.serializers.codecs.errors import dotted


def unfit_for_avro(value: Any, schema: Any) -> str | None:
    """Return which field of the value is missing; None if none is, or if the schema refers to others."""
    from fastavro.schema import SchemaParseException, UnknownType, parse_schema  # noqa: PLC0415  only for Avro

    try:
        parsed = parse_schema(schema)
    except (SchemaParseException, UnknownType):
        return None
    return missing_field(value, parsed) or None


def unfit_for_json_schema(error: BaseException) -> str | None:
    """Return which field the validator's error is about; None if the error is not the validator's."""
    from jsonschema import ValidationError  # type: ignore[import-untyped]  # noqa: PLC0415  only for JSON Schema

    found = error if isinstance(error, ValidationError) else error.__cause__ or error.__context__
    if not isinstance(found, ValidationError):
        return None
    path: Sequence[str | int] = list(found.absolute_path)
    if found.validator == "required" and isinstance(found.validator_value, list):  # in draft 3, a boolean
        missing = (each for each in found.validator_value if each not in found.instance)
        return f"the field {dotted([*path, next(missing)])} is missing"
    return f"the field {dotted(path)}: {found.message}" if path else None


def unfit_for_protobuf(value: Any) -> str | None:
    """Return which required field of a proto2 message is missing; None if none is, or it is no message."""
    find = getattr(value, "FindInitializationErrors", None)
    missing: list[str] = [] if find is None else find()
    return f"the field {missing[0]} is missing" if missing else None
