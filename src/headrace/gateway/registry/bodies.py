"""Bodies and parameters of the registry's requests and responses, with Confluent's names."""

from typing import Annotated, Any, Final, NamedTuple

from fastapi import Depends, Path, Query
from pydantic import BaseModel, ConfigDict, Field, StrictInt, field_validator

from headrace.registry.fingerprints import guid
from headrace.registry.formats import Reference, Schema, SchemaType
from headrace.registry.records import SchemaValue
from headrace.registry.refusals import Invalid, InvalidVersion, NotPermitted
from headrace.registry.registration import SubmittedSchema
from headrace.registry.state import LATEST, Show

_MAX_INT: Final = 2**31 - 1

# `json_schema_extra` is only for readers of the OpenAPI document: the registry itself refuses what does not
# match it, with the error codes that its clients know.
PRINTABLE: Final = {"pattern": r"^[^\x00-\x1f\x7f-\x9f]+$"}
Subject = Annotated[str, Path(description="The subject, percent-encoded", json_schema_extra={**PRINTABLE})]
VersionOf = Annotated[
    str,
    Path(
        description="The number of a version, or `latest`",
        json_schema_extra={"pattern": "^(latest|-1|[1-9][0-9]{0,8})$"},
    ),
]
Deleted = Annotated[bool, Query(description="Include what is soft-deleted")]
DeletedOnly = Annotated[bool, Query(alias="deletedOnly", description="Only what is soft-deleted")]
Normalize = Annotated[bool, Query(description="Normalize schemas before they are compared")]
Format = Annotated[
    str, Query(alias="format", description="The output format, such as `resolved` or `serialized`")
]


class Page(NamedTuple):
    """Which entries of a list to return."""

    offset: int = 0
    limit: int = -1

    def of(self, found: list[Any]) -> list[Any]:
        return found[self.offset :] if self.limit < 0 else found[self.offset : self.offset + self.limit]


async def page_of(
    offset: Annotated[int, Query(ge=0, description="How many entries to skip")] = 0,
    limit: Annotated[int, Query(description="The most entries to return; all if negative")] = -1,
) -> Page:
    return Page(offset, limit)


async def show_of(*, deleted: Deleted = False) -> Show:
    return Show.ALL if deleted else Show.LIVE


async def show_one_of(*, deleted: Deleted = False, deleted_only: DeletedOnly = False) -> Show:
    return Show.DELETED if deleted_only else Show.ALL if deleted else Show.LIVE


PageDep = Annotated[Page, Depends(page_of)]
ShowDep = Annotated[Show, Depends(show_of)]
ShowOneDep = Annotated[Show, Depends(show_one_of)]


class ReferenceBody(BaseModel):
    """The name by which a schema refers to a version of a subject; version -1 is the latest."""

    name: str
    subject: str
    version: StrictInt


class SchemaBody(BaseModel):
    """A schema that a client submits. `id` and `version` are for mode IMPORT."""

    model_config = ConfigDict(populate_by_name=True)

    text: str = Field(alias="schema")
    type: str | None = Field(
        default=None, alias="schemaType", json_schema_extra={"enum": [None, *SchemaType]}
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
        given = [(name, (metadata or {}).get(name)) for name in ("properties", "tags")]
        if wrong := [name for name, value in given if not isinstance(value, dict | None)]:
            raise ValueError(f"{', '.join(wrong)}: an object is expected")
        return metadata

    def submitted(self) -> SubmittedSchema:
        """Return the schema in the registry's types; raise a Refusal if that is not possible."""
        if self.tags_to_add or self.tags_to_remove:
            raise NotPermitted("schemaTagsToAdd and schemaTagsToRemove are not supported")
        if (self.type or SchemaType.AVRO) not in list(SchemaType):
            raise Invalid(f"Invalid schema type {self.type}")
        for body in self.references or ():
            if body.version != LATEST and not 1 <= body.version <= _MAX_INT:
                raise InvalidVersion(body.version)
        references = tuple(Reference(body.name, body.subject, body.version) for body in self.references or ())
        return SubmittedSchema(
            Schema(SchemaType(self.type or SchemaType.AVRO), self.text, references),
            self.metadata,
            self.rule_set,
            _number(self.id, least=0),
            _number(self.version, least=1),
        )


class SchemaAnswer(BaseModel):
    """A version of a subject. A missing `schemaType` is AVRO."""

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
    id: int
    version: int
    guid: str


class Compatibility(BaseModel):
    """Whether a schema is compatible; with `verbose`, `messages` say why it is not."""

    is_compatible: bool
    messages: list[str] | None = None


def schema_answer(value: SchemaValue, *, text: str | None = None) -> SchemaAnswer:
    """Return a version, with `text` in place of the schema's own text if it is given."""
    schema = value.schema
    references = [
        ReferenceBody(name=reference.name, subject=reference.subject, version=reference.version)
        for reference in schema.references
    ]
    return SchemaAnswer(
        subject=value.subject,
        version=value.version,
        id=value.id,
        guid=guid(value),
        type=None if schema.type is SchemaType.AVRO else str(schema.type),
        references=references or None,
        metadata=None if value.metadata is None else dict(value.metadata),
        rule_set=None if value.rule_set is None else dict(value.rule_set),
        text=schema.text if text is None else text,
        deleted=True if value.deleted else None,
    )


def version_number(given: str) -> int:
    """Return the version that a path names; raise InvalidVersion if it is not a version."""
    text = given.strip().lower()
    if text in {"latest", "-1"}:
        return LATEST
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:11]) <= _MAX_INT:
        raise InvalidVersion(given)
    return int(text[:11])


def _number(given: int | None, *, least: int) -> int | None:
    """Return an id or a version, or None for 0 and -1, which clients send for none."""
    if given is None or given < least:
        return None
    if given > _MAX_INT:
        raise InvalidVersion(given)
    return given
