"""What requests may say, and the bounds of it."""

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
NAME: Final = 249  # characters of a topic's name, at most
GROUP: Final = 1000  # characters of a group's name that are looked at
SETTINGS: Final = 200  # that one request may change
NO_NUL: Final = r"^[^\x00]*$"  # which ends a name in C, and so in librdkafka
PLACES: Final = 10_000  # partitions that one request may be about
UNKNOWN: Final = 20  # fields that are told one by one

TopicName = Annotated[
    str,
    Path(description="A topic's name.", min_length=1, max_length=NAME, pattern=NO_NUL, examples=["orders"]),
]
GroupName = Annotated[
    str,
    Path(description="A group's name.", min_length=1, max_length=GROUP, pattern=NO_NUL, examples=["billing"]),
]
BrokerId = Annotated[int, Path(description="A broker's id.", ge=0, le=INT32, examples=[0])]
PartitionId = Annotated[int, Path(description="A partition's number.", ge=0, le=INT32, examples=[0])]
PartitionQuery = Annotated[int | None, Query(description="Only this partition.", ge=0, le=INT32)]

Index = Annotated[StrictInt, Field(ge=0, le=INT32)]
Offset = Annotated[StrictInt, Field(ge=0, le=INT64)]
TimeMs = Annotated[StrictInt, Field(ge=0, le=INT64)]
Name = Annotated[StrictStr, Field(min_length=1, max_length=NAME, pattern=NO_NUL)]
Value = Annotated[StrictStr | StrictBool | StrictInt | StrictFloat, Field(union_mode="left_to_right")]


def example(**fields: Any) -> ConfigDict:
    """For a body's `model_config`: what it may look like."""
    return ConfigDict(extra="forbid", frozen=True, json_schema_extra={"examples": [fields]})


def _failing_fast(schema: Any) -> Any:
    """The schema, with every list in it ended by its first mistake, and every object of few keys."""
    if isinstance(schema, list | tuple):
        return type(schema)(map(_failing_fast, schema))
    if not isinstance(schema, dict):
        return schema
    made = {name: _failing_fast(each) for name, each in schema.items() if name != "metadata"}
    kept = {name: each for name, each in schema.items() if name == "metadata"}
    whole = made | kept | ({"fail_fast": True} if schema.get("type") == "list" else {})
    if schema.get("type") == "dict" and "keys_schema" in schema:
        return no_info_before_validator_function(partial(_few_keys, schema.get("max_length", PLACES)), whole)
    return whole


def _few_keys(most: int, given: Any) -> Any:
    """What was given, unless it is an object of more keys: an error for each of many takes too much."""
    if isinstance(given, dict) and len(given) > most:
        said = f"has {len(given):,} keys, and {most:,} are the most"
        raise PydanticCustomError("too_many_keys", "{said}", {"said": said})
    return given


class Body(BaseModel):
    """What is asked for; a field that is not known is refused, for somebody expects something of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A list is looked at until its first mistake: an error for each of many members takes too much."""
        schema: CoreSchema = _failing_fast(handler(source))
        return schema

    @model_validator(mode="before")
    @classmethod
    def _has_few_unknown_fields(cls, given: Any) -> Any:
        if isinstance(given, dict) and len(given) > len(cls.model_fields) + UNKNOWN:
            said = f"has {len(given):,} fields, and there are {len(cls.model_fields)}"
            raise PydanticCustomError("too_many_fields", "{said}", {"said": said})
        return given


def settings(given: dict[str, Any]) -> dict[str, str]:
    """Settings as Kafka takes them, which is as text: true becomes "true", 60000 becomes "60000"."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()
    }
