"""The reader of JSON: a record is validated by its writer's schema, and its fields are read by name."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jsonschema_rs

from headrace.registry.formats.json.schema import JsonSchema
from headrace.registry.formats.json.text import load
from headrace.tables.registry.json_rows import decode_json
from headrace.tables.registry.json_shapes import JsonShapes
from headrace.tables.registry.reader import ResolvedSchema, Unreadable, parse_writer
from headrace.tables.registry.shapes import Shape, one_line


class JsonReader:
    def __init__(self, reader: JsonSchema) -> None:
        self._reader = reader
        self.shape: Shape = JsonShapes(reader).root()

    def decoder_for(self, writer: ResolvedSchema) -> Callable[[bytes], Any]:
        schema, documents = parse_writer(writer, JsonSchema, self._reader), writer.documents

        def retrieve(uri: str) -> Any:
            names = [name for name in documents if uri == name or uri.endswith(f"/{name}")]
            if not names:
                raise LookupError(f"{uri} is not among the schema's references")
            return load(documents[max(names, key=len)])

        try:
            # Serializers do not validate formats, so a value may violate its format.
            validator = jsonschema_rs.validator_for(schema.root, retriever=retrieve, validate_formats=False)
        except Exception as error:  # jsonschema-rs documents no common base of its errors
            raise Unreadable(f"jsonschema-rs cannot use the schema: {one_line(error)}") from error
        return partial(_decode, validator)


def _decode(validator: Any, payload: bytes) -> Any:
    found = decode_json(payload)
    try:
        if validator.is_valid(found):
            return found
        invalid = next(iter(validator.iter_errors(found)))
    except (ValueError, TypeError, RecursionError) as error:
        raise Unreadable(f"it cannot be validated by its schema: {one_line(error)}") from error
    where = "/".join(map(str, invalid.instance_path))
    message = " ".join(invalid.message.split())[:300]
    raise Unreadable(f"it does not fit its schema{f' at {where}' if where else ''}: {message}")
