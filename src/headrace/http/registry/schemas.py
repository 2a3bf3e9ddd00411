"""/schemas: by id, by fingerprint, or all of them."""

from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query

from headrace.http.problems import answers
from headrace.http.registry.bodies import (
    ContextId,
    Deleted,
    Format,
    Limit,
    Offset,
    SchemaAnswer,
    SubjectVersion,
    answered,
    page,
)
from headrace.http.registry.media import RegistryJSON, RegistryRoute, RegistryText
from headrace.http.registry.registry import Asked, Registry
from headrace.http.registry.subjects import INVALID, NOT_THERE, shown
from headrace.registry import names
from headrace.registry.fingerprints import read_guid
from headrace.registry.formats import SchemaType
from headrace.registry.records import SchemaValue
from headrace.registry.refusals import NoSuchSchema
from headrace.registry.state import State

router = APIRouter(tags=["schemas"], route_class=RegistryRoute, default_response_class=RegistryJSON)

UNAVAILABLE: Final = answers(HTTPStatus.SERVICE_UNAVAILABLE)
Id = Annotated[int, Path(description="The id of a schema, as messages carry it", examples=[1])]
Guid = Annotated[str, Path(description="A fingerprint, as headers of messages carry it")]
In = Annotated[str, Query(alias="subject", description="A subject that has it, or a context: `:.billing:`")]


@router.get("/schemas", response_model_exclude_none=True, responses=INVALID)
def list_schemas(
    registry: Asked,
    *,
    subject_prefix: Annotated[
        str, Query(alias="subjectPrefix", description="What their subjects begin with")
    ] = "",
    latest_only: Annotated[bool, Query(alias="latestOnly", description="Only a subject's newest")] = False,
    deleted: Deleted = False,
    offset: Offset = 0,
    limit: Limit = -1,
) -> list[SchemaAnswer]:
    """All versions of all subjects."""
    show = shown(deleted=deleted)

    def find(state: State) -> list[SchemaValue]:
        found = []
        for subject in state.subjects(subject_prefix, show):
            versions = state.versions(subject, show)
            found += versions[-1:] if latest_only else versions
        return found

    return [answered(each) for each in page(registry.ask(lambda state, _: find(state)), offset, limit)]


@router.get("/schemas/types", responses=UNAVAILABLE)
def list_types() -> list[str]:
    """The formats that there are."""
    return [str(each) for each in (SchemaType.JSON, SchemaType.PROTOBUF, SchemaType.AVRO)]


@router.get("/schemas/ids/{schema_id}", response_model_exclude_none=True, responses=NOT_THERE)
def get_schema(
    registry: Asked,
    schema_id: Id,
    subject: In = "",
    how: Format = "",
    fetch_max_id: Annotated[
        bool, Query(alias="fetchMaxId", description="Whether to say which is the highest id")
    ] = False,
) -> SchemaAnswer:
    """The schema of an id. It is found as long as any version has it, deleted (softly) or not."""
    value = registry.by_id(schema_id, names.normal(subject))
    answer = answered(value, text=_text(registry, value, how))
    if not subject:
        answer.subject = answer.version = None
    answer.id = answer.deleted = None
    if fetch_max_id:
        context = names.context_of(value.subject)
        answer.max_id = registry.ask(lambda state, _: state.max_id(context))
    return answer


@router.get("/schemas/ids/{schema_id}/schema", response_class=RegistryText, responses=NOT_THERE)
def get_schema_text(registry: Asked, schema_id: Id, subject: In = "", how: Format = "") -> RegistryText:
    """The schema of an id, as it is."""
    return RegistryText(_text(registry, registry.by_id(schema_id, names.normal(subject)), how))


@router.get("/schemas/ids/{schema_id}/subjects", responses=NOT_THERE)
def get_subjects_of_id(
    registry: Asked,
    *,
    schema_id: Id,
    subject: In = "",
    deleted: Deleted = False,
    offset: Offset = 0,
    limit: Limit = -1,
) -> list[str]:
    """The subjects that have this schema."""
    found = _places(registry, schema_id, subject, deleted=deleted)
    return page(list(dict.fromkeys(each.subject for each in found)), offset, limit)


@router.get("/schemas/ids/{schema_id}/versions", responses=NOT_THERE)
def get_versions_of_id(
    registry: Asked,
    *,
    schema_id: Id,
    subject: In = "",
    deleted: Deleted = False,
    offset: Offset = 0,
    limit: Limit = -1,
) -> list[SubjectVersion]:
    """The subjects that have this schema, and as which version."""
    found = _places(registry, schema_id, subject, deleted=deleted)
    return page([SubjectVersion(subject=each.subject, version=each.version) for each in found], offset, limit)


@router.get("/schemas/guids/{guid}", response_model_exclude_none=True, responses=NOT_THERE)
def get_schema_by_guid(registry: Asked, guid: Guid, how: Format = "") -> SchemaAnswer:
    """The schema of a fingerprint, which is the same in every registry."""
    value = registry.by_guid(guid)
    answer = answered(value, text=_text(registry, value, how))
    answer.subject = answer.version = answer.deleted = None
    return answer


@router.get("/schemas/guids/{guid}/ids", responses=UNAVAILABLE)
def get_ids_of_guid(registry: Asked, guid: Guid) -> list[ContextId]:
    """The ids that a fingerprint has here, in one context or in several."""
    wanted = read_guid(guid)
    found = [] if wanted is None else registry.ask(lambda state, _: state.versions_with_fingerprint(wanted))
    ids = dict.fromkeys((names.context_of(each.subject), each.id) for each in found)
    return [ContextId(context=context, id=schema_id) for context, schema_id in ids]


def _text(registry: Registry, value: SchemaValue, how: str) -> str:
    if not how.strip():
        return value.schema.text
    return registry.understood(value).formatted(how.strip())


def _places(registry: Registry, schema_id: int, subject: str, *, deleted: bool) -> list[SchemaValue]:
    show = shown(deleted=deleted)

    def find(state: State) -> list[SchemaValue]:
        home = names.context_of(state.by_id(schema_id, names.normal(subject)).subject)
        found = state.versions_with_id(schema_id, home)
        if not found:
            raise NoSuchSchema(schema_id)
        return [each for each in found if show.has(deleted=each.deleted)]

    return registry.ask(lambda state, _: find(state))
