"""Parameters and bodies of requests, and their bounds."""

from functools import partial
from typing import Annotated, Any, Final

from fastapi import Path, Query
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import no_info_before_validator_function

INT32: Final = 2**31 - 1
INT64: Final = 2**63 - 1
NAME: Final = 249  # most characters of a topic's name
GROUP: Final = 1000  # most characters of a group's name
SETTINGS: Final = 200  # most settings that a request may change
NO_NUL: Final = r"^[^\x00]*$"  # a NUL ends a string in C, and so in librdkafka
PARTITIONS: Final = 10_000  # most partitions in a request
UNKNOWN: Final = 20  # unknown fields that are reported one by one

TopicName = Annotated[str, Path(description="The topic.", min_length=1, max_length=NAME, pattern=NO_NUL)]
GroupName = Annotated[str, Path(description="The group.", min_length=1, max_length=GROUP, pattern=NO_NUL)]
BrokerId = Annotated[int, Path(description="The broker's id.", ge=0, le=INT32)]
NodeName = Annotated[str, Path(description="The node's name, as in headrace.node.", max_length=249)]
PartitionId = Annotated[int, Path(description="The partition's number.", ge=0, le=INT32)]
PartitionQuery = Annotated[int | None, Query(description="Only this partition.", ge=0, le=INT32)]

Index = Annotated[StrictInt, Field(ge=0, le=INT32)]
Offset = Annotated[StrictInt, Field(ge=0, le=INT64)]
TimeMs = Annotated[StrictInt, Field(ge=0, le=INT64)]
Name = Annotated[StrictStr, Field(min_length=1, max_length=NAME, pattern=NO_NUL)]
Value = Annotated[StrictStr | StrictBool | StrictInt | StrictFloat, Field(union_mode="left_to_right")]


def _failing_fast(schema: Any) -> Any:
    """Return the schema with `fail_fast` for every list, and a bound on the keys of every object."""
    if isinstance(schema, list | tuple):
        return type(schema)(map(_failing_fast, schema))
    if not isinstance(schema, dict):
        return schema
    whole = {name: each if name == "metadata" else _failing_fast(each) for name, each in schema.items()}
    if schema.get("type") == "list":
        whole["fail_fast"] = True
    if schema.get("type") == "dict" and "keys_schema" in schema:
        check = partial(_check_keys, schema.get("max_length", PARTITIONS))
        return no_info_before_validator_function(check, whole)
    return whole


def _check_keys(most: int, given: Any) -> Any:
    if isinstance(given, dict) and len(given) > most:
        why = f"has {len(given):,} keys, expected at most {most:,}"
        raise PydanticCustomError("too_many_keys", "{why}", {"why": why})
    return given


class Body(BaseModel):
    """A request's body. An unknown field is refused, since the client expects something of it.

    Validation stops at the first error of a list, and refuses an object with too many keys or fields as a
    whole: an error for each of many members would cost too much memory.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema: CoreSchema = _failing_fast(handler(source))
        return schema

    @model_validator(mode="before")
    @classmethod
    def _has_few_unknown_fields(cls, given: Any) -> Any:
        if isinstance(given, dict) and len(given) > len(cls.model_fields) + UNKNOWN:
            why = f"has {len(given):,} fields, expected at most {len(cls.model_fields)}"
            raise PydanticCustomError("too_many_fields", "{why}", {"why": why})
        return given


def settings(given: dict[str, Any]) -> dict[str, str]:
    """Return settings as text, as Kafka takes them: true becomes "true", 60000 becomes "60000"."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()
    }
