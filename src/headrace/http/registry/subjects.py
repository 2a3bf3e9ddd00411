"""/subjects: names, versions; a schema is registered, looked up and deleted."""

from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, Query

from headrace.http.problems import answers
from headrace.http.registry.bodies import (
    Deleted,
    Format,
    Limit,
    Normalize,
    Offset,
    Registered,
    SchemaAnswer,
    SchemaBody,
    Subject,
    VersionOf,
    answered,
    page,
    text_of,
    version_number,
)
from headrace.http.registry.media import RegistryJSON, RegistryRoute, RegistryText
from headrace.http.registry.registry import Asked, Registry
from headrace.registry import names
from headrace.registry.deletion import delete_subject, delete_version
from headrace.registry.fingerprints import guid
from headrace.registry.library import Library
from headrace.registry.records import SchemaKey, SchemaValue
from headrace.registry.refusals import NoSuchSchema, NoSuchSubject
from headrace.registry.registration import lookup, register
from headrace.registry.state import Show, State

NOT_THERE: Final = answers(
    HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE
)
INVALID: Final = answers(HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE)

router = APIRouter(tags=["subjects"], route_class=RegistryRoute, default_response_class=RegistryJSON)


def shown(*, deleted: bool, deleted_only: bool = False) -> Show:
    if deleted_only:
        return Show.DELETED
    return Show.ALL if deleted else Show.LIVE


def named(state: State, subject: str) -> str:
    """The subject that is meant: by its one spelling, and not an alias."""
    return state.settings.resolve_alias(names.normal(subject))


@router.get("/subjects", responses=INVALID)
def list_subjects(
    registry: Asked,
    *,
    subject_prefix: Annotated[
        str, Query(alias="subjectPrefix", description="What they begin with; `:*:` is any context")
    ] = names.EVERYWHERE,
    deleted: Deleted = False,
    deleted_only: Annotated[bool, Query(alias="deletedOnly", description="Only what is deleted")] = False,
    offset: Offset = 0,
    limit: Limit = -1,
) -> list[str]:
    """The names of subjects."""
    show = shown(deleted=deleted, deleted_only=deleted_only)
    return page(registry.ask(lambda state, _: state.subjects(subject_prefix, show)), offset, limit)


@router.get("/subjects/{subject}/versions", responses=NOT_THERE)
def list_versions(
    registry: Asked,
    *,
    subject: Subject,
    deleted: Deleted = False,
    deleted_only: Annotated[bool, Query(alias="deletedOnly", description="Only what is deleted")] = False,
    deleted_as_negative: Annotated[
        bool, Query(alias="deletedAsNegative", description="All of them; those that are deleted below zero")
    ] = False,
    offset: Offset = 0,
    limit: Limit = -1,
) -> list[int]:
    """The numbers of a subject's versions."""
    show = shown(
        deleted=deleted or deleted_as_negative, deleted_only=deleted_only and not deleted_as_negative
    )

    def numbers(state: State) -> list[int]:
        name = named(state, subject)
        if not state.versions(name, Show.ALL if deleted or deleted_only else Show.LIVE):
            raise NoSuchSubject(name)
        return [
            -each.version if each.deleted and deleted_as_negative else each.version
            for each in state.versions(name, show)
        ]

    return page(registry.ask(lambda state, _: numbers(state)), offset, limit)


@router.post(
    "/subjects/{subject}/versions",
    responses=INVALID | answers(HTTPStatus.CONFLICT),
)
def register_schema(
    registry: Asked, subject: Subject, body: SchemaBody, *, normalize: Normalize = False
) -> Registered:
    """Register a schema: it is there already, or may follow what is there and becomes the next version."""
    wanted = body.wanted()
    registry.understand(names.normal(subject), wanted.schema)
    made = registry.change(
        lambda state, library: register(state, library, named(state, subject), wanted, normalize=normalize)
    )
    return Registered(id=made.id, version=made.version, guid=guid(made))


@router.post("/subjects/{subject}", response_model_exclude_none=True, responses=NOT_THERE)
def look_up_schema(
    registry: Asked,
    subject: Subject,
    body: SchemaBody,
    *,
    normalize: Normalize = False,
    deleted: Deleted = False,
    how: Format = "",
) -> SchemaAnswer:
    """The version of a subject that is this schema."""
    wanted = body.wanted()
    registry.understand(names.normal(subject), wanted.schema)

    show = shown(deleted=deleted)

    def find(state: State, library: Library) -> tuple[SchemaValue, str]:
        value = lookup(state, library, named(state, subject), wanted, normalize=normalize, show=show)
        return value, text_of(value, library.parsed_version(value) if how else None, how)

    value, text = registry.ask(find)
    return answered(value, text=text)


@router.get("/subjects/{subject}/metadata", response_model_exclude_none=True, responses=NOT_THERE)
def latest_with_metadata(
    registry: Asked,
    subject: Subject,
    key: Annotated[list[str], Query(description="Names of properties")] = [],  # noqa: B006
    value: Annotated[list[str], Query(description="What those are to be, in the same order")] = [],  # noqa: B006
    *,
    deleted: Deleted = False,
    how: Format = "",
) -> SchemaAnswer:
    """The newest version whose metadata have these properties."""
    wanted = dict(zip(key, value, strict=False))

    def find(state: State) -> int:
        name = named(state, subject)
        versions = state.versions(name, shown(deleted=deleted))
        if not versions:
            raise NoSuchSubject(name)
        for each in reversed(versions):
            if all(each.metadata_property(name) == said for name, said in wanted.items()):
                return each.version
        raise NoSuchSchema

    return _version(registry, subject, registry.ask(lambda state, _: find(state)), how, deleted=deleted)


@router.get("/subjects/{subject}/versions/{version}", response_model_exclude_none=True, responses=NOT_THERE)
def get_version(
    registry: Asked, subject: Subject, version: VersionOf, *, deleted: Deleted = False, how: Format = ""
) -> SchemaAnswer:
    """One version of a subject."""
    return _version(registry, subject, version_number(version), how, deleted=deleted)


@router.get("/subjects/{subject}/versions/{version}/schema", response_class=RegistryText, responses=NOT_THERE)
def get_version_text(
    registry: Asked, subject: Subject, version: VersionOf, *, deleted: Deleted = False, how: Format = ""
) -> RegistryText:
    """The schema of one version, as it is."""
    return RegistryText(_version(registry, subject, version_number(version), how, deleted=deleted).text)


@router.get("/subjects/{subject}/versions/{version}/referencedby", responses=NOT_THERE)
def get_referrers(
    registry: Asked,
    *,
    subject: Subject,
    version: VersionOf,
    deleted: Deleted = False,
    offset: Offset = 0,
    limit: Limit = -1,
) -> list[int]:
    """The ids of the schemas that refer to this one."""
    number = version_number(version)

    def ids(state: State) -> list[int]:
        value = state.version(named(state, subject), number, Show.ALL)
        referrers = state.referrers(SchemaKey(value.subject, value.version), shown(deleted=deleted))
        return sorted({each.id for each in referrers})

    return page(registry.ask(lambda state, _: ids(state)), offset, limit)


Permanent = Annotated[
    bool, Query(description="Whether what has been deleted before is to go for good, its id included")
]


@router.delete("/subjects/{subject}", responses=NOT_THERE)
def remove_subject(registry: Asked, subject: Subject, *, permanent: Permanent = False) -> list[int]:
    """Delete a subject; the answer is which versions it had."""
    return registry.change(lambda state, _: delete_subject(state, named(state, subject), permanent=permanent))


@router.delete("/subjects/{subject}/versions/{version}", responses=NOT_THERE)
def remove_version(
    registry: Asked, subject: Subject, version: VersionOf, *, permanent: Permanent = False
) -> int:
    """Delete one version of a subject."""
    number = version_number(version)
    return registry.change(
        lambda state, _: delete_version(state, named(state, subject), number, permanent=permanent)
    )


def _version(registry: Registry, subject: str, version: int, how: str, *, deleted: bool) -> SchemaAnswer:
    def find(state: State, library: Library) -> tuple[SchemaValue, str]:
        value = state.version(named(state, subject), version, shown(deleted=deleted))
        return value, text_of(value, library.parsed_version(value) if how else None, how)

    value, text = registry.ask(find)
    return answered(value, text=text)
