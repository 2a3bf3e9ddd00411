"""kafka-python's opinion: the bytes its encoder makes, driven by Kafka's message definitions."""

import copy
import json
import re
from functools import cache
from typing import Any
from uuid import UUID
from zipfile import ZipFile

from kafka.protocol.data_container import DataContainer
from kafka.protocol.schemas import StructField

from compat.kafka_tools.java import CLIENTS, find_jars
from headrace.protocol.compiled.structs import default_of
from oracles.schemas import Case


def kafka_python_bytes(case: Case, message: Any) -> bytes:
    container = container_class(case.cls.__name__)
    converted = _convert(message, container, case.version)
    encoded = converted.encode(version=case.version, compact=case.flexible, tagged=case.flexible)
    return bytes(encoded)


@cache
def container_class(name: str) -> Any:
    """A class of kafka-python's for the message: its plain schema, without its clients' amendments."""
    return type(name, (DataContainer,), {"_struct": StructField(schema_json(name))})


@cache
def schema_json(name: str) -> Any:
    """Kafka's own definition of a message; raise KafkaUnavailableError if its jar cannot be had."""
    (jar,) = find_jars(CLIENTS).glob("kafka-clients-*.jar")
    with ZipFile(jar) as archive:
        text = archive.read(f"common/message/{name}.json").decode()
    definition = json.loads(re.sub(r"^\s*//.*", "", text, flags=re.MULTILINE))
    common = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", ())}

    def name_fields(fields: list[Any]) -> None:
        """Put the fields of common structs where other structs have theirs: kafka-python looks only there."""
        for field in fields:
            if (struct := field["type"].removeprefix("[]")) in common:
                field["fields"] = copy.deepcopy(common[struct])
            name_fields(field.get("fields", []))

    name_fields(definition["fields"])
    return definition


def has_encoder(case: Case) -> bool:
    """Whether kafka-python can encode the message: it treats headers, and a field `version`, differently."""
    names = {field.name for field in case.cls.__fields__}
    return case.module not in {"request_header", "response_header"} and "version" not in names


def _convert(message: Any, container: Any, version: int) -> Any:
    cls: Any = type(message)
    defaults = {field.name: default_of(field, cls) for field in cls.__fields__}
    values = {}
    for field in container._struct.fields.values():
        if not field.for_version_q(version):
            continue
        value = getattr(message, field.name)
        if field._tag is None or value != defaults[field.name]:  # it writes every tag that it is given
            values[field.name] = _convert_value(value, field, version)
    return container(version=version, **values)


def _convert_value(value: Any, field: Any, version: int) -> Any:
    if value is None:
        return None
    if field.is_struct_array():
        return [_convert(item, field.data_class, version) for item in value]
    if field.is_struct():
        return _convert(value, field.data_class, version)
    if field.type_str == "uuid":
        return UUID(bytes=value)
    if field.type_str == "[]uuid":
        return [UUID(bytes=item) for item in value]
    return value
