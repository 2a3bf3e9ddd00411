"""/subjects: schemas are registered, looked up and deleted. Also /contexts, and what the registry is."""

from typing import Annotated, Any

from fastapi import Path, Query, Response

from headrace import __version__
from headrace.gateway.problems import answers
from headrace.gateway.reach import ReachDep
from headrace.gateway.registry.bodies import (
    Deleted,
    DeletedOnly,
    Format,
    Normalize,
    PageDep,
    Registered,
    SchemaAnswer,
    SchemaBody,
    ShowDep,
    ShowOneDep,
    Subject,
    VersionOf,
    schema_answer,
    version_number,
)
from headrace.gateway.registry.media import RegistryText, registry_router
from headrace.gateway.registry.registry import RegistryDep, RightsDep, SchemaRegistry, resolved
from headrace.registry import names
from headrace.registry.deletion import delete_context, delete_subject, delete_version
from headrace.registry.fingerprints import guid
from headrace.registry.library import Library
from headrace.registry.records import SchemaKey, SchemaValue
from headrace.registry.refusals import NoSuchSchema, NoSuchSubject
from headrace.registry.registration import lookup
from headrace.registry.state import RegistryState, Show

router = registry_router("subjects")

Permanent = Annotated[
    bool, Query(description="Delete permanently, with the id, what has been soft-deleted before")
]


@router.get("/subjects")
def list_subjects(
    registry: RegistryDep,
    rights: RightsDep,
    show: ShowOneDep,
    page: PageDep,
    subject_prefix: Annotated[
        str, Query(alias="subjectPrefix", description="Prefix of the subjects; `:*:` is any context")
    ] = names.EVERYWHERE,
) -> list[str]:
    found = registry.read(lambda state: state.subjects(subject_prefix, show))
    return page.of(rights.visible(found))


@router.get("/subjects/{subject}/versions")
def list_versions(
    registry: RegistryDep,
    *,
    subject: Subject,
    deleted: Deleted = False,
    deleted_only: DeletedOnly = False,
    deleted_as_negative: Annotated[
        bool,
        Query(alias="deletedAsNegative", description="Include soft-deleted versions as negative numbers"),
    ] = False,
    page: PageDep,
) -> list[int]:
    if deleted_as_negative:
        show = Show.ALL
    else:
        show = Show.DELETED if deleted_only else Show.ALL if deleted else Show.LIVE

    def numbers(state: RegistryState) -> list[int]:
        name = resolved(state, subject)
        if not state.versions(name, Show.ALL if deleted or deleted_only else Show.LIVE):
            raise NoSuchSubject(name)
        return [
            -version.version if version.deleted and deleted_as_negative else version.version
            for version in state.versions(name, show)
        ]

    return page.of(registry.read(numbers))


@router.post("/subjects/{subject}/versions", responses=answers(409))
def register_schema(
    registry: RegistryDep,
    rights: RightsDep,
    subject: Subject,
    body: SchemaBody,
    *,
    normalize: Normalize = False,
) -> Registered:
    """Register a schema as the next version of a subject, unless it is registered already."""
    submitted = body.submitted()
    rights.check_references(submitted.schema.references, subject)
    made = registry.register(subject, submitted, normalize=normalize)
    return Registered(id=made.id, version=made.version, guid=guid(made))


@router.post("/subjects/{subject}", response_model_exclude_none=True)
def look_up_schema(
    registry: RegistryDep,
    rights: RightsDep,
    subject: Subject,
    body: SchemaBody,
    *,
    show: ShowDep,
    normalize: Normalize = False,
    format_: Format = "",
) -> SchemaAnswer:
    """Return the version of a subject that has this schema."""
    submitted = body.submitted()
    rights.check_references(submitted.schema.references, subject)
    registry.understand(names.normal(subject), submitted.schema)

    def find(state: RegistryState, library: Library) -> SchemaAnswer:
        name = resolved(state, subject)
        value = lookup(state, library, name, submitted, normalize=normalize, show=show)
        return formatted_answer(value, library, format_)

    return registry.ask(find)


@router.get("/subjects/{subject}/metadata", response_model_exclude_none=True)
def latest_with_metadata(
    registry: RegistryDep,
    subject: Subject,
    key: Annotated[list[str], Query(description="Names of properties")] = [],  # noqa: B006
    value: Annotated[list[str], Query(description="Their values, in the same order")] = [],  # noqa: B006
    *,
    show: ShowDep,
    format_: Format = "",
) -> SchemaAnswer:
    """Return the latest version whose metadata have these properties."""
    wanted = dict(zip(key, value, strict=False))

    def find(state: RegistryState, library: Library) -> SchemaAnswer:
        name = resolved(state, subject)
        versions = state.versions(name, show)
        if not versions:
            raise NoSuchSubject(name)
        for version in reversed(versions):
            if all(version.metadata_property(name) == wanted[name] for name in wanted):
                return formatted_answer(version, library, format_)
        raise NoSuchSchema

    return registry.ask(find)


@router.get("/subjects/{subject}/versions/{version}", response_model_exclude_none=True)
def get_version(
    registry: RegistryDep, subject: Subject, version: VersionOf, show: ShowDep, format_: Format = ""
) -> SchemaAnswer:
    return _version(registry, subject, version, format_, show)


@router.get("/subjects/{subject}/versions/{version}/schema", response_class=RegistryText)
def get_version_text(
    registry: RegistryDep, subject: Subject, version: VersionOf, show: ShowDep, format_: Format = ""
) -> RegistryText:
    return RegistryText(_version(registry, subject, version, format_, show).text)


@router.get("/subjects/{subject}/versions/{version}/referencedby")
def get_referrers(
    registry: RegistryDep, subject: Subject, version: VersionOf, show: ShowDep, page: PageDep
) -> list[int]:
    """Return the ids of the schemas that refer to this version."""
    number = version_number(version)

    def ids(state: RegistryState) -> list[int]:
        value = state.version(resolved(state, subject), number, Show.ALL)
        referrers = state.referrers(SchemaKey(value.subject, value.version), show)
        return sorted({referrer.id for referrer in referrers})

    return page.of(registry.read(ids))


@router.delete("/subjects/{subject}")
def remove_subject(registry: RegistryDep, subject: Subject, *, permanent: Permanent = False) -> list[int]:
    """Delete a subject, and return the numbers of its versions."""
    return registry.change(
        lambda state, _: delete_subject(state, resolved(state, subject), permanent=permanent)
    )


@router.delete("/subjects/{subject}/versions/{version}")
def remove_version(
    registry: RegistryDep, subject: Subject, version: VersionOf, *, permanent: Permanent = False
) -> int:
    """Delete a version of a subject, and return its number."""
    number = version_number(version)
    return registry.change(
        lambda state, _: delete_version(state, resolved(state, subject), number, permanent=permanent)
    )


def formatted_answer(value: SchemaValue, library: Library, format_: str) -> SchemaAnswer:
    """Return a version with its text in an output format; a schema is only parsed if one is given."""
    text = library.parsed_version(value).formatted(format_.strip()) if format_.strip() else None
    return schema_answer(value, text=text)


def _version(registry: SchemaRegistry, subject: str, version: str, format_: str, show: Show) -> SchemaAnswer:
    number = version_number(version)

    def find(state: RegistryState, library: Library) -> SchemaAnswer:
        value = state.version(resolved(state, subject), number, show)
        return formatted_answer(value, library, format_)

    return registry.ask(find)


@router.get("/contexts")
def list_contexts(
    registry: RegistryDep,
    rights: RightsDep,
    page: PageDep,
    context_prefix: Annotated[str, Query(alias="contextPrefix", description="Prefix of the contexts")] = "",
) -> list[str]:
    """Return the contexts that have subjects; `.` is the default context."""
    found = registry.read(lambda state: state.contexts())
    if rights.restricts:
        subjects = rights.visible(registry.read(lambda state: state.subjects(show=Show.ALL)))
        readable = {names.DEFAULT_CONTEXT, *map(names.context_of, subjects)}
        found = [each for each in found if each in readable]
    return page.of([each for each in found if each.startswith(context_prefix)])


@router.delete("/contexts/{context}", status_code=204)
def remove_context(
    registry: RegistryDep, context: Annotated[str, Path(description="A context without subjects")]
) -> Response:
    name = names.context_of(context) if context.startswith(":") else context
    registry.change(lambda state, _: delete_context(state, name))
    return Response(status_code=204)


@router.get("/v1/metadata/id")
def get_cluster_id(reach: ReachDep) -> dict[str, Any]:
    """Return the id of the Kafka cluster that has the schemas."""
    cluster = reach.metadata().cluster_id or ""
    scope = {"kafka-cluster": cluster, "schema-registry-cluster": "schema-registry"}
    return {"scope": {"path": [], "clusters": scope}, "id": ""}


@router.get("/v1/metadata/version")
def get_server_version() -> dict[str, str]:
    return {"version": __version__, "commitId": "headrace"}
