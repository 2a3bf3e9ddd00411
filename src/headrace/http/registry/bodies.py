"""What is sent to the registry, and what it sends: Confluent's names, in JSON."""

from typing import Annotated, Any, Final

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field, StrictInt, field_validator

from headrace.registry.fingerprints import guid
from headrace.registry.formats import Parsed, Reference, Schema, SchemaType
from headrace.registry.records import SchemaValue
from headrace.registry.refusals import Invalid, InvalidVersion, NotPermitted
from headrace.registry.registration import SubmittedSchema
from headrace.registry.state import LATEST

_MAX_INT: Final = 2**31 - 1

# What is `json_schema_extra` here is said to readers of the OpenAPI page. What does not keep to it is refused
# by the registry itself, with the numbers that its clients know.
PRINTABLE: Final = {"pattern": r"^[^\x00-\x1f\x7f-\x9f]+$"}
Subject = Annotated[
    str,
    Path(
        description="The subject, percent-encoded", examples=["orders-value"], json_schema_extra={**PRINTABLE}
    ),
]
VersionOf = Annotated[
    str,
    Path(
        description="A version: its number, or `latest`",
        examples=["latest"],
        json_schema_extra={"pattern": "^(latest|-1|[1-9][0-9]{0,8})$"},
    ),
]
Deleted = Annotated[bool, Query(description="Whether what is deleted, but not for good, is meant too")]
Normalize = Annotated[
    bool, Query(description="Whether differences that mean nothing are to be resolved first")
]
Format = Annotated[
    str, Query(alias="format", description="`resolved`, `serialized` …: what the format of the schema knows")
]
Offset = Annotated[int, Query(ge=0, description="How many to leave out")]
Limit = Annotated[int, Query(description="How many at most; all of them if it is negative")]


class ReferenceBody(BaseModel):
    """What the schema's text calls another schema; version -1 is the newest there is at the time."""

    name: str
    subject: str
    version: StrictInt


class SchemaBody(BaseModel):
    """A schema, as somebody brings it. `id` and `version` are for mode IMPORT."""

    model_config = ConfigDict(populate_by_name=True)

    text: str = Field(alias="schema", examples=['{"type": "string"}'])
    type: str | None = Field(
        default=None,
        alias="schemaType",
        examples=["AVRO"],
        json_schema_extra={"enum": [None, *SchemaType]},
    )
    references: Annotated[list[ReferenceBody], Field(fail_fast=True)] | None = None
    metadata: dict[str, Any] | None = None
    rule_set: dict[str, Any] | None = Field(default=None, alias="ruleSet")
    id: StrictInt | None = None
    version: StrictInt | None = None
    tags_to_add: list[Any] | None = Field(default=None, alias="schemaTagsToAdd")
    tags_to_remove: list[Any] | None = Field(default=None, alias="schemaTagsToRemove")

    @field_validator("metadata")
    @classmethod
    def _has_maps(cls, metadata: dict[str, Any] | None) -> dict[str, Any] | None:
        said = [(name, (metadata or {}).get(name)) for name in ("properties", "tags")]
        if wrong := [name for name, value in said if not isinstance(value, dict | None)]:
            raise ValueError(f"{', '.join(wrong)}: an object is expected")
        return metadata

    def wanted(self) -> SubmittedSchema:
        """The same in the registry's words; a Refusal if it cannot be meant."""
        if self.tags_to_add or self.tags_to_remove:
            raise NotPermitted("schemaTagsToAdd and schemaTagsToRemove are not supported")
        return SubmittedSchema(
            Schema(
                _schema_type(self.type), self.text, tuple(_reference(each) for each in self.references or ())
            ),
            self.metadata,
            self.rule_set,
            _number(self.id, least=0),
            _number(self.version, least=1),
        )


class SchemaAnswer(BaseModel):
    """A schema that is there. What is not said is not there: `schemaType` is AVRO then."""

    subject: str | None = None
    version: int | None = None
    id: int | None = None
    guid: str | None = None
    type: str | None = Field(default=None, serialization_alias="schemaType")
    references: list[ReferenceBody] | None = None
    metadata: dict[str, Any] | None = None
    rule_set: dict[str, Any] | None = Field(default=None, serialization_alias="ruleSet")
    text: str | None = Field(default=None, serialization_alias="schema")
    deleted: bool | None = None
    max_id: int | None = Field(default=None, serialization_alias="maxId")


class SubjectVersion(BaseModel):
    subject: str
    version: int


class ContextId(BaseModel):
    context: str
    id: int


class Registered(BaseModel):
    """Where a schema has come to be."""

    id: int
    version: int
    guid: str


class Compatibility(BaseModel):
    """Whether a schema may follow; `messages` say why not, if asked for."""

    is_compatible: bool
    messages: list[str] | None = None


def answered(value: SchemaValue, *, text: str | None = None) -> SchemaAnswer:
    """A version, all of it."""
    schema = value.schema
    return SchemaAnswer(
        subject=value.subject,
        version=value.version,
        id=value.id,
        guid=guid(value),
        type=None if schema.type is SchemaType.AVRO else str(schema.type),
        references=[
            ReferenceBody(name=each.name, subject=each.subject, version=each.version)
            for each in schema.references
        ]
        or None,
        metadata=None if value.metadata is None else dict(value.metadata),
        rule_set=None if value.rule_set is None else dict(value.rule_set),
        text=schema.text if text is None else text,
        deleted=True if value.deleted else None,
    )


def text_of(value: SchemaValue, parsed: Parsed | None, how: str) -> str:
    """The schema as `?format=` wants it: only what is to be changed has to be understood."""
    return value.schema.text if parsed is None or not how.strip() else parsed.formatted(how.strip())


def version_number(said: str) -> int:
    """A version as it stands in a path."""
    text = said.strip().lower()
    if text in {"latest", "-1"}:
        return LATEST
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:11]) <= _MAX_INT:
        raise InvalidVersion(said)
    return int(text[:11])


def page(found: list[Any], offset: int, limit: int) -> list[Any]:
    """A part of a long list."""
    return found[offset:] if limit < 0 else found[offset : offset + limit]


def _schema_type(said: str | None) -> SchemaType:
    try:
        return SchemaType(said or SchemaType.AVRO)
    except ValueError:
        raise Invalid(f"Invalid schema type {said}") from None


def _reference(body: ReferenceBody) -> Reference:
    if body.version != LATEST and not 1 <= body.version <= _MAX_INT:
        raise InvalidVersion(body.version)
    return Reference(body.name, body.subject, body.version)


def _number(said: int | None, *, least: int) -> int | None:
    """An id or a version; clients that want none say 0 or -1."""
    if said is None or said < least:
        return None
    if said > _MAX_INT:
        raise InvalidVersion(said)
    return said
