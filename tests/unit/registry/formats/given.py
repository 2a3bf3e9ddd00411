"""Schemas in few words, and what two of them differ in."""

import json
import re
from typing import Any

from headrace.registry.formats import InvalidSchema, Parsed, Reference, Schema, SchemaType, parse
from headrace.registry.formats.compatibility import incompatibilities


def avro(node: Any, **references: Any) -> Parsed:
    """A schema from JSON; `references` are other subjects' schemas by the subject's name."""
    return parsed(SchemaType.AVRO, node, references)


def json_schema(node: Any, **references: Any) -> Parsed:
    return parsed(SchemaType.JSON, node, references)


def proto(text: str, **references: str) -> Parsed:
    """A schema from a .proto text; a reference called `a_proto` is imported as a.proto."""
    return parsed(SchemaType.PROTOBUF, text, references)


def proto3(body: str, **references: str) -> Parsed:
    return proto(f'syntax = "proto3"; {body}', **references)


def parsed(type_: SchemaType, node: Any, references: dict[str, Any]) -> Parsed:
    subjects = {re.sub("_(proto|json)$", r".\1", name): other for name, other in references.items()}
    listed = tuple(Reference(name, name, 1) for name in subjects)
    return parse(Schema(type_, _text(node), listed), lambda ref: Schema(type_, _text(subjects[ref.subject])))


def _text(node: Any) -> str:
    return node if isinstance(node, str) else json.dumps(node)


def no_references(reference: Reference) -> Schema:
    raise InvalidSchema(f"There is no {reference.subject}.")


def kinds(reader: Parsed, writer: Parsed) -> list[str]:
    """The kinds of difference that keep `reader` from reading what `writer` wrote; [] if nothing does."""
    return re.findall(r"errorType:'(\w+)'", "".join(incompatibilities(reader, writer)))
