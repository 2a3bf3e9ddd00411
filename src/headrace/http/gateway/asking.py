"""What requests may say, and the bounds of it."""

from typing import Annotated, Any, Final

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

INT32: Final = 2**31 - 1
INT64: Final = 2**63 - 1
NAME: Final = 249  # characters of a topic's name, at most
GROUP: Final = 1000  # characters of a group's name that are looked at
SETTINGS: Final = 200  # that one request may change
NO_NUL: Final = r"^[^\x00]*$"  # which ends a name in C, and so in librdkafka
PLACES: Final = 10_000  # partitions that one request may be about

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


class Body(BaseModel):
    """What is asked for; a field that is not known is refused, for somebody expects something of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def settings(given: dict[str, Any]) -> dict[str, str]:
    """Settings as Kafka takes them, which is as text: true becomes "true", 60000 becomes "60000"."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()
    }
