"""Schemas in files: their type and their references. Pure."""

import json
import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import Final

from headrace.client.errors import ClientError
from headrace.client.schemas.registry import AVRO, Reference, Registered, Schema

TYPES: Final = (AVRO, "JSON", "PROTOBUF")
_BY_SUFFIX: Final = {".avsc": AVRO, ".avro": AVRO, ".json": "JSON", ".proto": "PROTOBUF"}
_DESCRIPTION: Final = re.compile(r"description:\s*['\"](.+?)['\"](?:, additionalInfo:|\}$|$)", re.DOTALL)
_REFERENCE: Final = re.compile(r"(?P<name>[^=]+)=(?P<subject>.+):(?P<version>\d+)")


def read_schema(
    name: str, text: str, schema_type: str | None = None, references: Iterable[str] = ()
) -> Schema:
    """Return the schema in a file, of the given type or of the type by the file's suffix.

    ClientError if the type is unknown, or the text is not JSON where it has to be.
    """
    chosen = schema_type or _BY_SUFFIX.get(PurePath(name).suffix.lower())
    if chosen is None:
        raise ClientError(f"{name}: unknown suffix, expected .avsc, .json or .proto: give --type")
    if not text.strip():
        raise ClientError(f"{name} is empty")
    if chosen == "JSON" or (chosen == AVRO and not text.strip().isidentifier()):
        try:
            json.loads(text)
        except ValueError as error:
            raise ClientError(f"{name} is not JSON: {error}") from None
    return Schema(text=text, type=chosen, references=tuple(map(read_reference, references)))


def read_reference(text: str) -> Reference:
    """Return a reference: `other.proto=other-value:2` is version 2 of other-value, used as other.proto."""
    found = _REFERENCE.fullmatch(text)
    if found is None:
        raise ClientError(f"--reference {text}: expected NAME=SUBJECT:VERSION")
    return Reference(name=found["name"], subject=found["subject"], version=int(found["version"]))


def pretty(schema: Registered | Schema) -> str:
    """Return the text of a schema for people: JSON indented, Protobuf unchanged."""
    text = schema.text if isinstance(schema, Schema) else schema.schema
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text.rstrip("\n")


def reasons(messages: Iterable[str]) -> list[str]:
    """Return the descriptions in the messages about an incompatible schema, or all messages without one.

    The other messages of a registry repeat the old schema and the compatibility level.
    """
    every = list(dict.fromkeys(messages))
    described = [found[1] for each in every if (found := _DESCRIPTION.search(each))]
    return described or every
