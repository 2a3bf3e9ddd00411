"""Reads Kafka's message definitions, the files `common/message/*.json` in the jar of its clients."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile

from .model import NOT_GIVEN, Field, Message, Schema, Struct

# So common in responses, and so commonly "nothing happened", that nobody should have to write them.
QUIET_FIELDS: Final = {"throttle_time_ms": 0, "error_code": 0, "error_message": None}


def read_schemas(jar: Path) -> list[Schema]:
    """Every schema that has versions: the APIs by key, then headers and data schemas by name."""
    messages: dict[tuple[int, str], dict[str, Message]] = defaultdict(dict)
    with ZipFile(jar) as archive:
        for path in archive.namelist():
            if path.startswith("common/message/") and path.endswith(".json"):
                text = re.sub(r"^\s*//.*", "", archive.read(path).decode(), flags=re.MULTILINE)
                definition = json.loads(text)
                if definition["validVersions"] != "none":
                    message = _message(definition)
                    is_api = message.key is not None
                    title = re.sub("(Request|Response)$", "", message.name) if is_api else message.name
                    place = (message.key if message.key is not None else 1 << 15, snake_case(title))
                    messages[place][definition["type"]] = message
    return [
        Schema(module, tuple(message for _, message in sorted(kinds.items())))  # request, then response
        for (_, module), kinds in sorted(messages.items())
    ]


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _message(definition: Any) -> Message:
    name = definition["name"]
    versions = _versions(definition["validVersions"])
    common = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", ())}
    # Of each struct its fields, and the versions of all fields that hold it; nested ones first.
    structs: dict[str, tuple[list[Any], set[int]]] = {}

    def collect(struct: str, fields: list[Any], present: Iterable[int]) -> None:
        for field in fields:
            nested = field["type"].removeprefix("[]")
            in_versions = set(present) & set(_versions(field["versions"], versions))
            if nested[0].isupper() and in_versions:
                collect(nested, field.get("fields") or common[nested], in_versions)
        structs.setdefault(struct, (fields, set()))[1].update(present)

    collect(name, definition["fields"], versions)
    read = [
        Struct(struct, tuple(_fields(fields, sorted(present))))
        for struct, (fields, present) in structs.items()
    ]
    *nested, root = read
    return Message(
        name=name,
        key=definition.get("apiKey"),
        versions=versions,
        flexible=_versions(definition["flexibleVersions"], versions),
        latest_version_unstable=definition.get("latestVersionUnstable", False),
        structs=tuple(nested),
        fields=root.fields,
    )


def _fields(definitions: list[Any], present: list[int]) -> Iterable[Field]:
    """The fields of a struct that exists in the versions `present`."""
    for definition in definitions:
        name = snake_case(definition["name"])
        versions = _versions(definition["versions"], present)
        nullable = _versions(definition.get("nullableVersions", "none"), versions)
        tag = definition.get("tag")
        if not versions:
            continue
        if tag is not None:
            tagged = _versions(definition["taggedVersions"], versions)
            assert tagged == versions, f"{name} is tagged only in versions {tagged}"
        default = _default(definition, name, nullable=bool(nullable))
        yield Field(
            name=name,
            kind=definition["type"],
            versions=versions,
            nullable=nullable,
            tag=tag,
            default=default,
            required=default is NOT_GIVEN and tag is None and len(versions) == len(present),
            never_flexible=definition.get("flexibleVersions") == "none",
        )


def _default(definition: Any, name: str, *, nullable: bool) -> Any:
    if "default" not in definition:
        quiet = QUIET_FIELDS.get(name, NOT_GIVEN)
        return NOT_GIVEN if quiet is None and not nullable else quiet
    kind, default = definition["type"], definition["default"]
    text = str(default).lower()
    if default is None or text == "null":
        return None
    if kind == "string":
        return default
    if kind == "bool":
        return text == "true"
    return float(text) if kind == "float64" else int(text, 0)


def _versions(text: str, within: Iterable[int] = range(100)) -> tuple[int, ...]:
    """Of "3", "1-7", "6+" or "none" the versions that are also in `within`."""
    if text == "none":
        return ()
    first, _, last = text.removesuffix("+").partition("-")
    stop = 1 << 15 if text.endswith("+") else int(last or first) + 1
    return tuple(version for version in within if int(first) <= version < stop)
