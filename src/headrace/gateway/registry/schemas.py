"""/schemas: by id, by guid, or all of them."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Path, Query

from headrace.gateway.registry.bodies import (
    ContextId,
    Format,
    PageDep,
    SchemaAnswer,
    ShowDep,
    SubjectVersion,
    schema_answer,
)
from headrace.gateway.registry.media import RegistryText, registry_router
from headrace.gateway.registry.registry import RegistryDep, RightsDep, SchemaRegistry
from headrace.gateway.registry.rights import DESCRIBE, SubjectRights
from headrace.registry import names
from headrace.registry.fingerprints import read_guid
from headrace.registry.formats import SchemaType
from headrace.registry.records import SchemaValue
from headrace.registry.refusals import NoSuchSchema
from headrace.registry.state import RegistryState, Show

router = registry_router("schemas")

Id = Annotated[int, Path(description="The id of a schema, as records carry it")]
Guid = Annotated[str, Path(description="The guid of a schema, as record headers carry it")]
In = Annotated[str, Query(alias="subject", description="A subject that has it, or a context: `:.billing:`")]


@router.get("/schemas", response_model_exclude_none=True)
def list_schemas(
    registry: RegistryDep,
    rights: RightsDep,
    *,
    subject_prefix: Annotated[str, Query(alias="subjectPrefix", description="Prefix of the subjects")] = "",
    latest_only: Annotated[
        bool, Query(alias="latestOnly", description="Only the latest of each subject")
    ] = False,
    show: ShowDep,
    page: PageDep,
) -> list[SchemaAnswer]:
    """Return all versions of all subjects."""

    def find(state: RegistryState) -> list[SchemaValue]:
        found = []
        for subject in state.subjects(subject_prefix, show):
            versions = state.versions(subject, show)
            found += versions[-1:] if latest_only else versions
        return found

    found = _readable(rights, registry.read(find))
    return [schema_answer(each) for each in page.of(found)]


@router.get("/schemas/types")
def list_types() -> list[str]:
    return [str(each) for each in (SchemaType.JSON, SchemaType.PROTOBUF, SchemaType.AVRO)]


@router.get("/schemas/ids/{schema_id}", response_model_exclude_none=True)
def get_schema(
    registry: RegistryDep,
    rights: RightsDep,
    *,
    schema_id: Id,
    subject: In = "",
    format_: Format = "",
    fetch_max_id: Annotated[
        bool, Query(alias="fetchMaxId", description="Also return the highest id")
    ] = False,
) -> SchemaAnswer:
    """Return the schema of an id, as long as a version with it exists, soft-deleted or not."""
    value = _by_id(registry, rights, schema_id, subject)
    answer = schema_answer(value, text=_text(registry, value, format_))
    if not subject:
        answer.subject = answer.version = None
    answer.id = answer.deleted = None
    if fetch_max_id:
        context = names.context_of(value.subject)
        answer.max_id = registry.read(lambda state: state.max_id(context))
    return answer


@router.get("/schemas/ids/{schema_id}/schema", response_class=RegistryText)
def get_schema_text(
    registry: RegistryDep, rights: RightsDep, schema_id: Id, subject: In = "", format_: Format = ""
) -> RegistryText:
    return RegistryText(_text(registry, _by_id(registry, rights, schema_id, subject), format_))


@router.get("/schemas/ids/{schema_id}/subjects")
def get_subjects_of_id(
    registry: RegistryDep, rights: RightsDep, *, schema_id: Id, subject: In = "", show: ShowDep, page: PageDep
) -> list[str]:
    found = _readable(rights, _versions(registry, schema_id, subject, show))
    return page.of(list(dict.fromkeys(each.subject for each in found)))


@router.get("/schemas/ids/{schema_id}/versions")
def get_versions_of_id(
    registry: RegistryDep, rights: RightsDep, *, schema_id: Id, subject: In = "", show: ShowDep, page: PageDep
) -> list[SubjectVersion]:
    found = _readable(rights, _versions(registry, schema_id, subject, show))
    return page.of([SubjectVersion(subject=each.subject, version=each.version) for each in found])


@router.get("/schemas/guids/{guid}", response_model_exclude_none=True)
def get_schema_by_guid(
    registry: RegistryDep, rights: RightsDep, guid: Guid, format_: Format = ""
) -> SchemaAnswer:
    """Return the schema of a guid, which is the same in every registry."""
    value = registry.by_guid(guid)
    rights.check_schema(value)
    answer = schema_answer(value, text=_text(registry, value, format_))
    answer.subject = answer.version = answer.deleted = None
    return answer


@router.get("/schemas/guids/{guid}/ids")
def get_ids_of_guid(registry: RegistryDep, rights: RightsDep, guid: Guid) -> list[ContextId]:
    """Return the ids of a guid in all contexts."""
    wanted = read_guid(guid)
    found = [] if wanted is None else registry.read(lambda state: state.versions_with_fingerprint(wanted))
    found = _readable(rights, found)
    ids = dict.fromkeys((names.context_of(each.subject), each.id) for each in found)
    return [ContextId(context=context, id=schema_id) for context, schema_id in ids]


def _by_id(registry: SchemaRegistry, rights: SubjectRights, schema_id: int, subject: str) -> SchemaValue:
    """Return the version with this id; a Problem (403) if the user may read no subject that has it."""
    value = registry.by_id(schema_id, names.normal(subject))
    if subject and rights.restricts:  # the answer names the subject
        rights.check(DESCRIBE, value.subject)
    rights.check_schema(value)
    return value


def _readable(rights: SubjectRights, found: Sequence[SchemaValue]) -> list[SchemaValue]:
    subjects = set(rights.visible(each.subject for each in found))
    return [each for each in found if each.subject in subjects]


def _text(registry: SchemaRegistry, value: SchemaValue, format_: str) -> str | None:
    return registry.understood(value).formatted(format_.strip()) if format_.strip() else value.schema.text


def _versions(registry: SchemaRegistry, schema_id: int, subject: str, show: Show) -> list[SchemaValue]:
    def find(state: RegistryState) -> list[SchemaValue]:
        context = names.context_of(state.by_id(schema_id, names.normal(subject)).subject)
        found = state.versions_with_id(schema_id, context)
        if not found:
            raise NoSuchSchema(schema_id)
        return [version for version in found if show.has(deleted=version.deleted)]

    return registry.read(find)
