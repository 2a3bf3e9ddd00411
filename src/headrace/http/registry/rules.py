"""/compatibility, /config, /mode: what may follow what, and what may be done at all."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from headrace.http.problems import answers
from headrace.http.registry.bodies import (
    PRINTABLE,
    Compatibility,
    Normalize,
    SchemaBody,
    Subject,
    VersionOf,
    version_number,
)
from headrace.http.registry.media import RegistryJSON, RegistryRoute
from headrace.http.registry.registry import Asked, Registry
from headrace.http.registry.subjects import INVALID, NOT_THERE, named
from headrace.registry import names
from headrace.registry.configuration import (
    delete_config,
    delete_mode,
    parse_level,
    parse_mode,
    set_config,
    set_mode,
    settings_scope,
)
from headrace.registry.formats import Level
from headrace.registry.library import Library
from headrace.registry.record_json import config_document
from headrace.registry.records import ConfigValue, Mode, SchemaValue
from headrace.registry.refusals import Invalid, NoConfig, NoMode, NoSuchSubject, NoSuchVersion, NotPermitted
from headrace.registry.registration import compatible
from headrace.registry.state import LATEST, State

router = APIRouter(tags=["rules"], route_class=RegistryRoute, default_response_class=RegistryJSON)

Verbose = Annotated[bool, Query(description="Whether to say why not")]
Owner = Annotated[
    str,
    Path(
        alias="subject",
        description="A subject, or a context: `:.billing:`",
        examples=["orders-value"],
        json_schema_extra={**PRINTABLE},
    ),
]
DefaultToGlobal = Annotated[
    bool, Query(alias="defaultToGlobal", description="Whether what holds is meant, whoever set it")
]
UNAVAILABLE: Final = answers(HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE)


class ConfigBody(BaseModel):
    """Settings; what is not named stays as it is."""

    model_config = ConfigDict(populate_by_name=True, extra="allow")

    compatibility: str | None = Field(
        default=None, examples=["FULL_TRANSITIVE"], json_schema_extra={"enum": [None, *Level]}
    )
    level: str | None = Field(default=None, alias="compatibilityLevel")
    alias: str | None = None
    normalize: StrictBool | None = None
    group: str | None = Field(default=None, alias="compatibilityGroup")

    def changes(self) -> dict[str, Any]:
        """What is to be set; NotPermitted if that has no effect here."""
        unknown = [name for name, value in (self.model_extra or {}).items() if value not in (None, False)]
        if unknown:
            raise NotPermitted(f"{', '.join(sorted(unknown))}: such settings are not supported")
        said = self.compatibility if self.compatibility is not None else self.level
        changes = self.model_dump(include={"alias", "normalize", "group"}, exclude_unset=True, by_alias=True)
        return changes if said is None else {**changes, "compatibilityLevel": str(parse_level(said))}


class ModeBody(BaseModel):
    """A mode: READWRITE, READONLY, READONLY_OVERRIDE or IMPORT."""

    mode: str = Field(examples=["READWRITE"], json_schema_extra={"enum": [*Mode]})


# -- compatibility ---------------------------------------------------------------------------------


@router.post(
    "/compatibility/subjects/{subject}/versions/{version}",
    response_model_exclude_none=True,
    responses=NOT_THERE,
)
def check_against_version(
    registry: Asked,
    subject: Subject,
    version: VersionOf,
    body: SchemaBody,
    *,
    verbose: Verbose = False,
    normalize: Normalize = False,
) -> Compatibility:
    """Whether a schema may follow this version, by what is set for the subject."""
    number = version_number(version)

    def olds(state: State) -> list[SchemaValue]:
        try:
            return [state.version(named(state, subject), number)]
        except NoSuchSubject:
            if number == LATEST:
                return []
            raise NoSuchVersion(number) from None

    return _checked(registry, subject, body, olds, verbose=verbose, normalize=normalize)


@router.post(
    "/compatibility/subjects/{subject}/versions", response_model_exclude_none=True, responses=INVALID
)
def check_against_all(
    registry: Asked,
    subject: Subject,
    body: SchemaBody,
    *,
    verbose: Verbose = False,
    normalize: Normalize = False,
) -> Compatibility:
    """Whether a schema could be registered: as far as other versions go that the subject's level looks at."""
    return _checked(
        registry,
        subject,
        body,
        lambda state: state.versions(named(state, subject)),
        verbose=verbose,
        normalize=normalize,
    )


def _checked(
    registry: Registry,
    subject: str,
    body: SchemaBody,
    olds: Callable[[State], list[SchemaValue]],
    *,
    verbose: bool,
    normalize: bool,
) -> Compatibility:
    wanted = body.wanted()

    def check(state: State, library: Library) -> list[str]:
        versions = olds(state)
        return compatible(state, library, named(state, subject), wanted, versions, normalize=normalize)

    try:
        registry.understand(names.normal(subject), wanted.schema)
        messages = registry.ask(check)
    except Invalid as error:
        if not verbose:
            raise
        messages = [str(error)]
    return Compatibility(is_compatible=not messages, messages=messages if verbose else None)


# -- config ----------------------------------------------------------------------------------------


@router.get("/config", responses=UNAVAILABLE)
def get_global_config(registry: Asked) -> dict[str, Any]:
    """What is set for all subjects that have nothing of their own."""
    return registry.ask(lambda state, _: config_document(state.settings.config_in_force(None)))


@router.put("/config", responses=INVALID)
def set_global_config(registry: Asked, body: ConfigBody) -> dict[str, Any]:
    """Set the compatibility of all subjects that have none of their own."""
    return _set_config(registry, None, body)


@router.delete("/config", responses=UNAVAILABLE)
def delete_global_config(registry: Asked) -> dict[str, Any]:
    """Back to BACKWARD; the answer is what it was."""
    return config_document(registry.change(lambda state, _: delete_config(state, None)))


@router.get("/config/{subject}", responses=NOT_THERE)
def get_config(
    registry: Asked, subject: Owner, *, default_to_global: DefaultToGlobal = False
) -> dict[str, Any]:
    """What is set for a subject."""
    owner = settings_scope(subject)

    def find(state: State) -> ConfigValue:
        if state.settings.config(owner) is None and owner is not None and not default_to_global:
            raise NoConfig(owner)
        return state.settings.config_in_force(owner)

    return config_document(registry.ask(lambda state, _: find(state)))


@router.put("/config/{subject}", responses=INVALID)
def set_subject_config(registry: Asked, subject: Owner, body: ConfigBody) -> dict[str, Any]:
    """Set the compatibility of a subject, or of a context."""
    return _set_config(registry, settings_scope(subject), body)


@router.delete("/config/{subject}", responses=NOT_THERE)
def delete_subject_config(registry: Asked, subject: Owner) -> dict[str, Any]:
    """Have what is set for all hold again; the answer is what it was."""
    owner = settings_scope(subject)
    return config_document(registry.change(lambda state, _: delete_config(state, owner)))


def _set_config(registry: Registry, owner: str | None, body: ConfigBody) -> dict[str, Any]:
    changes = body.changes()
    made = registry.change(lambda state, _: set_config(state, owner, changes))
    return config_document(made, level="compatibility")


# -- mode ------------------------------------------------------------------------------------------

Force = Annotated[bool, Query(description="Whether to go to IMPORT although there are schemas")]


class ModeAnswer(BaseModel):
    mode: Mode


@router.get("/mode", responses=UNAVAILABLE)
def get_global_mode(registry: Asked) -> ModeAnswer:
    """What may be done where nothing else is set."""
    return ModeAnswer(mode=registry.ask(lambda state, _: state.settings.mode_in_force(None)))


@router.put("/mode", responses=INVALID)
def set_global_mode(registry: Asked, body: ModeBody, *, force: Force = False) -> ModeAnswer:
    """Say what may be done where nothing else is set."""
    return _set_mode(registry, None, body, force=force)


@router.delete("/mode", responses=UNAVAILABLE)
def delete_global_mode(registry: Asked) -> ModeAnswer:
    """Back to READWRITE; the answer is what it was."""
    return ModeAnswer(mode=registry.change(lambda state, _: delete_mode(state, None)))


@router.get("/mode/{subject}", responses=NOT_THERE)
def get_mode(registry: Asked, subject: Owner, *, default_to_global: DefaultToGlobal = False) -> ModeAnswer:
    """What may be done to a subject."""
    owner = settings_scope(subject)

    def find(state: State) -> Mode:
        if state.settings.mode(owner) is None and owner is not None and not default_to_global:
            raise NoMode(owner)
        return state.settings.mode_in_force(owner)

    return ModeAnswer(mode=registry.ask(lambda state, _: find(state)))


@router.put("/mode/{subject}", responses=INVALID)
def set_subject_mode(registry: Asked, subject: Owner, body: ModeBody, *, force: Force = False) -> ModeAnswer:
    """Say what may be done to a subject, or in a context."""
    return _set_mode(registry, settings_scope(subject), body, force=force)


@router.delete("/mode/{subject}", responses=NOT_THERE)
def delete_subject_mode(registry: Asked, subject: Owner) -> ModeAnswer:
    """Have what is set for all hold again; the answer is what it was."""
    owner = settings_scope(subject)
    return ModeAnswer(mode=registry.change(lambda state, _: delete_mode(state, owner)))


def _set_mode(registry: Registry, owner: str | None, body: ModeBody, *, force: bool) -> ModeAnswer:
    mode = parse_mode(body.mode)
    return ModeAnswer(mode=registry.change(lambda state, _: set_mode(state, owner, mode, force=force)))
