"""kafka-python's opinion: the bytes its encoder makes, driven by the schema files Kafka publishes."""

import warnings
from functools import cache
from typing import Any
from uuid import UUID

from kafka.protocol.data_container import DataContainer
from kafka.protocol.schemas import StructField, load_json

from headrace.protocol.structs import default_of
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
    """Kafka's own schema file of a message, or None if kafka-python does not ship it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # how it opens its files
        try:
            return load_json(name)
        except FileNotFoundError:
            return None


def has_schema(case: Case) -> bool:
    """Whether kafka-python has the message; headers have an encoder of their own there."""
    headers = {"request_header", "response_header"}
    return case.module not in headers and schema_json(case.cls.__name__) is not None


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
