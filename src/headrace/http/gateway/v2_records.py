"""REST proxy, v2: the body of a request that writes records."""

from typing import Annotated, Any, Final

from pydantic import Field, StrictInt, StrictStr

from headrace.http.gateway.asking import INT32, Body, Index, example

AT_ONCE: Final = 100_000  # records in a request


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
        list[RecordV2],
        Field(min_length=1, max_length=AT_ONCE, examples=[[{"key": "a", "value": {"n": 1}}]]),
    ]
    key_schema: SchemaText = None
    key_schema_id: SchemaId = None
    value_schema: SchemaText = None
    value_schema_id: SchemaId = None
