"""JSON that has to fit the schema it was written with; the reader's fields are found in it by name."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NoReturn

import jsonschema_rs

from headrace.pipeline.registry.fitting import in_short
from headrace.pipeline.registry.json_shapes import JsonShapes
from headrace.pipeline.registry.reader import Unreadable, understood
from headrace.pipeline.registry.shapes import Shape
from headrace.pipeline.registry.whole import Whole
from headrace.registry.formats.json_schema import JsonSchema
from headrace.registry.formats.json_text import load


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant)


class JsonReading:
    """One reader's schema, and all that it reads."""

    def __init__(self, reader: JsonSchema) -> None:
        self._reader = reader
        self.shape: Shape = JsonShapes(reader).root()

    def of(self, writer: Whole) -> Callable[[bytes], Any]:
        """What reads the values that were written with `writer`."""
        schema, documents = understood(writer, JsonSchema, self._reader), writer.documents

        def retrieve(uri: str) -> Any:
            names = [name for name in documents if uri == name or uri.endswith(f"/{name}")]
            if not names:
                raise LookupError(f"{uri} is not among the schema's references")
            return load(documents[max(names, key=len)])

        try:
            # Formats tell what a value means. Serialisers do not look at them, so not every value has to fit.
            validator = jsonschema_rs.validator_for(schema.root, retriever=retrieve, validate_formats=False)
        except Exception as error:  # it has many, for many mistakes
            raise Unreadable(f"jsonschema-rs cannot use the schema: {in_short(error)}") from error
        return partial(_read, validator)


def _read(validator: Any, payload: bytes) -> Any:
    try:
        found = _DECODER.decode(payload.decode())
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is no JSON: {in_short(error)}") from error
    try:
        if validator.is_valid(found):
            return found
        unfit = next(iter(validator.iter_errors(found)))
    except (ValueError, TypeError, RecursionError) as problem:
        raise Unreadable(f"it cannot be held against its schema: {in_short(problem)}") from problem
    where = "/".join(map(str, unfit.instance_path))
    said = " ".join(unfit.message.split())[:300]
    raise Unreadable(f"it does not fit its schema{f' at {where}' if where else ''}: {said}")
