"""Names, types, versions, tags, nullability and defaults: as in Kafka's message definitions.

Our schema is generated from them. Where the generator leaves something out, this is where it would show.
"""

import re
from typing import Any

import pytest

from headrace.protocol.compiled.structs import StructType, default_of, struct_named
from headrace.protocol.fields import ALL_DEFAULTS, REQUIRED, Field, version_range
from headrace.protocol.message import Message
from oracles.kafka_python_messages import schema_json
from oracles.schemas import every_class

pytestmark = pytest.mark.usefixtures("kafka_clients")


@pytest.mark.parametrize("cls", [cls for _, cls in every_class()], ids=lambda cls: cls.__name__)
def test_a_message_has_the_fields_that_kafka_gives_it(cls: type[Message]) -> None:
    schema = schema_json(cls.__name__)
    versions = list(cls.__codec__.versions)
    assert versions[-1] == version_range(schema["validVersions"])[-1]
    assert_same_fields(cls, schema["fields"], versions)


def assert_same_fields(cls: StructType, theirs: list[Any], versions: list[int]) -> None:
    known = {snake_case(field["name"]): field for field in theirs if common(field["versions"], versions)}
    assert {field.name for field in cls.__fields__} == set(known)
    for field in cls.__fields__:
        their_field = known[field.name]
        assert_same_field(field, their_field, cls, versions)
        if field.holds_structs:
            nested = struct_named(field.item_kind, cls)
            assert_same_fields(nested, their_field["fields"], common(field.versions, versions))


def assert_same_field(field: Field, theirs: Any, cls: StructType, versions: list[int]) -> None:
    assert field.holds_structs or field.kind == theirs["type"]
    present = common(theirs["versions"], versions)
    assert common(field.versions, versions) == present
    assert common(field.nullable, versions) == common(theirs.get("nullableVersions", "none"), present)
    assert field.tag == theirs.get("tag")
    if "default" in theirs:
        assert field.default is not REQUIRED
        assert shown(default_of(field, cls)) == shown(theirs["default"])
    elif field.default not in (REQUIRED, ALL_DEFAULTS):
        assert not field.default or field.kind == "uuid"  # what Kafka implies: zero, empty, null


def common(text: str, versions: list[int]) -> list[int]:
    return [version for version in versions if version in version_range(text)]


def shown(value: Any) -> str:
    return "null" if value is None else str(value).lower().replace("0x7fffffff", "2147483647")


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
