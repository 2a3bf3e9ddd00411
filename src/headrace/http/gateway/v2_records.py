"""REST proxy, v2: the body of a request that writes records."""

import asyncio
from typing import Annotated, Any, Final

from fastapi.exceptions import RequestValidationError
from pydantic import Field, SkipValidation, StrictInt, StrictStr, ValidationError

from headrace.http.gateway.asking import INT32, Body, Index, example

AT_ONCE: Final = 100_000  # records in a request
TURN: Final = 500  # records after which other requests have their turn


class RecordV2(Body):
    """A record; what key and value are is said by the content type."""

    key: Any = None
    value: Any = None
    partition: Annotated[Index | None, Field(description="By the key if this is left out.")] = None


SchemaText = Annotated[StrictStr | None, Field(description="The schema itself; it is registered.")]
SchemaId = Annotated[
    StrictInt | None,
    Field(ge=1, le=INT32, description="Or the id of a schema, which is one of the subject's."),
]


class ProduceV2(Body):
    """Records, and the schemas of their keys and values if those are written by one."""

    model_config = example(records=[{"key": "alice", "value": {"item": "tea"}}, {"value": {"item": "milk"}}])

    records: Annotated[
        list[SkipValidation[RecordV2]],  # which `checked` makes up for
        Field(min_length=1, max_length=AT_ONCE, examples=[[{"key": "a", "value": {"n": 1}}]]),
    ]
    key_schema: SchemaText = None
    key_schema_id: SchemaId = None
    value_schema: SchemaText = None
    value_schema_id: SchemaId = None


async def checked(asked: ProduceV2) -> list[RecordV2]:
    """The records of a request, each looked at; other requests have their turn meanwhile.

    RequestValidationError as if they had been looked at with the rest of the body.
    """
    records: list[RecordV2] = []
    for number, given in enumerate(asked.records):
        if number % TURN == TURN - 1:
            await asyncio.sleep(0)
        try:
            records.append(RecordV2.model_validate(given))
        except ValidationError as error:
            raise RequestValidationError(
                [
                    {**each, "loc": ("body", "records", number, *each["loc"])}
                    for each in error.errors(include_url=False)
                ]
            ) from None
    return records
