"""Schemas in files: of which type they are, what they refer to, and how two of them differ. Pure."""

import difflib
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
    """The schema in a file: of the type that is given, or that the file's name says.

    ClientError if neither says, or if the text cannot be one: what is no JSON is not worth a request.
    """
    chosen = schema_type or _BY_SUFFIX.get(PurePath(name).suffix.lower())
    if chosen is None:
        raise ClientError(f"{name}: its name ends in none of .avsc .json .proto: give its --type")
    if not text.strip():
        raise ClientError(f"{name} is empty")
    if chosen == "JSON" or (chosen == AVRO and not text.strip().isidentifier()):
        try:
            json.loads(text)
        except ValueError as error:
            raise ClientError(f"{name} is not JSON: {error}") from None
    return Schema(text=text, type=chosen, references=tuple(map(read_reference, references)))


def read_reference(text: str) -> Reference:
    """`other.proto=other-value:2` is version 2 of the subject other-value, used as other.proto."""
    found = _REFERENCE.fullmatch(text)
    if found is None:
        raise ClientError(f"--reference {text}: expected NAME=SUBJECT:VERSION")
    return Reference(name=found["name"], subject=found["subject"], version=int(found["version"]))


def pretty(schema: Registered | Schema) -> str:
    """As a person would write it: JSON is indented, Protobuf is left alone."""
    text = schema.text if isinstance(schema, Schema) else schema.schema
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text.rstrip("\n")


def reasons(messages: Iterable[str]) -> list[str]:
    """What a person wants to know of why a schema does not fit: the descriptions, if there are any.

    A registry also repeats the old schema and the level that it asked for.
    """
    every = list(dict.fromkeys(messages))
    described = [found[1] for each in every if (found := _DESCRIPTION.search(each))]
    return described or every


def compare(old: Registered | Schema, new: Registered | Schema, names: tuple[str, str]) -> list[str]:
    """The lines of a unified diff between two schemas, references included; none if they are alike."""
    return list(difflib.unified_diff(_lines(old), _lines(new), *names, lineterm=""))


def _lines(schema: Registered | Schema) -> list[str]:
    uses = [f"uses {each.name}: {each.subject} version {each.version}" for each in schema.references]
    return [f"type {schema.type}", *uses, *pretty(schema).splitlines()]
