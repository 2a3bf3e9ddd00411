"""/compatibility, /config and /mode."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from headrace.gateway.registry.bodies import (
    PRINTABLE,
    Compatibility,
    Normalize,
    SchemaBody,
    Subject,
    VersionOf,
    version_number,
)
from headrace.gateway.registry.media import registry_router
from headrace.gateway.registry.registry import Registry, RegistryDep, RightsDep, resolved
from headrace.gateway.registry.rights import SubjectRights
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
from headrace.registry.library import Comparison, Library
from headrace.registry.record_json import config_document
from headrace.registry.records import ConfigValue, Mode, SchemaValue
from headrace.registry.refusals import Invalid, NoConfig, NoMode, NoSuchSubject, NoSuchVersion, NotPermitted
from headrace.registry.registration import compatible
from headrace.registry.state import LATEST, State

router = registry_router("rules")

Verbose = Annotated[bool, Query(description="Also return the reasons")]
Scope = Annotated[
    str,
    Path(
        alias="subject",
        description="A subject, or a context: `:.billing:`",
        examples=["orders-value"],
        json_schema_extra={**PRINTABLE},
    ),
]
DefaultToGlobal = Annotated[
    bool,
    Query(
        alias="defaultToGlobal", description="Return the value in force if the subject has none of its own"
    ),
]
Force = Annotated[bool, Query(description="Switch to IMPORT although there are schemas")]


# -- compatibility ---------------------------------------------------------------------------------


@router.post("/compatibility/subjects/{subject}/versions/{version}", response_model_exclude_none=True)
def check_against_version(
    registry: RegistryDep,
    rights: RightsDep,
    subject: Subject,
    version: VersionOf,
    body: SchemaBody,
    *,
    verbose: Verbose = False,
    normalize: Normalize = False,
) -> Compatibility:
    """Return whether a schema is compatible with a version, by the subject's compatibility level."""
    number = version_number(version)

    def olds(state: State) -> list[SchemaValue]:
        try:
            return [state.version(resolved(state, subject), number)]
        except NoSuchSubject:
            if number == LATEST:
                return []
            raise NoSuchVersion(number) from None

    return _check(registry, rights, subject, body, olds, verbose=verbose, normalize=normalize)


@router.post("/compatibility/subjects/{subject}/versions", response_model_exclude_none=True)
def check_against_all(
    registry: RegistryDep,
    rights: RightsDep,
    subject: Subject,
    body: SchemaBody,
    *,
    verbose: Verbose = False,
    normalize: Normalize = False,
) -> Compatibility:
    """Return whether a schema could be registered, by the subject's compatibility level."""

    def olds(state: State) -> list[SchemaValue]:
        return state.versions(resolved(state, subject))

    return _check(registry, rights, subject, body, olds, verbose=verbose, normalize=normalize)


def _check(
    registry: Registry,
    rights: SubjectRights,
    subject: str,
    body: SchemaBody,
    olds: Callable[[State], list[SchemaValue]],
    *,
    verbose: bool,
    normalize: bool,
) -> Compatibility:
    submitted = body.submitted()
    rights.check_references(submitted.schema.references, subject)

    def check(state: State, library: Library) -> list[str] | Comparison:
        versions = olds(state)
        return compatible(state, library, resolved(state, subject), submitted, versions, normalize=normalize)

    try:
        registry.understand(names.normal(subject), submitted.schema)
        messages = registry.ask(check)
    except Invalid as error:
        if not verbose:
            raise
        messages = [str(error)]
    return Compatibility(is_compatible=not messages, messages=messages if verbose else None)


# -- config ----------------------------------------------------------------------------------------


class ConfigBody(BaseModel):
    """Settings; those that are not named stay as they are."""

    model_config = ConfigDict(populate_by_name=True, extra="allow")

    compatibility: str | None = Field(
        default=None, examples=["FULL_TRANSITIVE"], json_schema_extra={"enum": [None, *Level]}
    )
    level: str | None = Field(default=None, alias="compatibilityLevel")
    alias: str | None = None
    normalize: StrictBool | None = None
    group: str | None = Field(default=None, alias="compatibilityGroup")

    def changes(self) -> dict[str, Any]:
        """Return the settings to change; raise NotPermitted for settings that have no effect here."""
        unknown = [name for name, value in (self.model_extra or {}).items() if value not in (None, False)]
        if unknown:
            raise NotPermitted(f"{', '.join(sorted(unknown))}: such settings are not supported")
        level = self.compatibility if self.compatibility is not None else self.level
        changes = self.model_dump(include={"alias", "normalize", "group"}, exclude_unset=True, by_alias=True)
        return changes if level is None else {**changes, "compatibilityLevel": str(parse_level(level))}


@router.get("/config")
def get_global_config(registry: RegistryDep) -> dict[str, Any]:
    """Return the global settings."""
    return config_document(registry.read(lambda state: state.settings.config_in_force(None)))


@router.put("/config")
def set_global_config(registry: RegistryDep, body: ConfigBody) -> dict[str, Any]:
    """Change the global settings, for all subjects without their own."""
    return _set_config(registry, None, body)


@router.delete("/config")
def delete_global_config(registry: RegistryDep) -> dict[str, Any]:
    """Reset the global compatibility level to BACKWARD, and return the previous settings."""
    return _delete_config(registry, None)


@router.get("/config/{subject}")
def get_config(
    registry: RegistryDep, subject: Scope, *, default_to_global: DefaultToGlobal = False
) -> dict[str, Any]:
    """Return the settings of a subject or a context."""
    scope = settings_scope(subject)

    def find(state: State) -> ConfigValue:
        if state.settings.config(scope) is None and scope is not None and not default_to_global:
            raise NoConfig(scope)
        return state.settings.config_in_force(scope)

    return config_document(registry.read(find))


@router.put("/config/{subject}")
def set_subject_config(registry: RegistryDep, subject: Scope, body: ConfigBody) -> dict[str, Any]:
    """Change the settings of a subject or a context."""
    return _set_config(registry, settings_scope(subject), body)


@router.delete("/config/{subject}")
def delete_subject_config(registry: RegistryDep, subject: Scope) -> dict[str, Any]:
    """Delete a subject's own settings, so that the global ones apply, and return the previous settings."""
    return _delete_config(registry, settings_scope(subject))


def _set_config(registry: Registry, scope: str | None, body: ConfigBody) -> dict[str, Any]:
    changes = body.changes()
    made = registry.change(lambda state, _: set_config(state, scope, changes))
    return config_document(made, level="compatibility")


def _delete_config(registry: Registry, scope: str | None) -> dict[str, Any]:
    return config_document(registry.change(lambda state, _: delete_config(state, scope)))


# -- mode ------------------------------------------------------------------------------------------


class ModeBody(BaseModel):
    """A mode: READWRITE, READONLY, READONLY_OVERRIDE or IMPORT."""

    mode: str = Field(examples=["READWRITE"], json_schema_extra={"enum": [*Mode]})


class ModeAnswer(BaseModel):
    mode: Mode


@router.get("/mode")
def get_global_mode(registry: RegistryDep) -> ModeAnswer:
    """Return the global mode."""
    return ModeAnswer(mode=registry.read(lambda state: state.settings.mode_in_force(None)))


@router.put("/mode")
def set_global_mode(registry: RegistryDep, body: ModeBody, *, force: Force = False) -> ModeAnswer:
    """Set the global mode, for all subjects without their own."""
    return _set_mode(registry, None, body, force=force)


@router.delete("/mode")
def delete_global_mode(registry: RegistryDep) -> ModeAnswer:
    """Reset the global mode to READWRITE, and return the previous mode."""
    return _delete_mode(registry, None)


@router.get("/mode/{subject}")
def get_mode(
    registry: RegistryDep, subject: Scope, *, default_to_global: DefaultToGlobal = False
) -> ModeAnswer:
    """Return the mode of a subject or a context."""
    scope = settings_scope(subject)

    def find(state: State) -> Mode:
        if state.settings.mode(scope) is None and scope is not None and not default_to_global:
            raise NoMode(scope)
        return state.settings.mode_in_force(scope)

    return ModeAnswer(mode=registry.read(find))


@router.put("/mode/{subject}")
def set_subject_mode(
    registry: RegistryDep, subject: Scope, body: ModeBody, *, force: Force = False
) -> ModeAnswer:
    """Set the mode of a subject or a context."""
    return _set_mode(registry, settings_scope(subject), body, force=force)


@router.delete("/mode/{subject}")
def delete_subject_mode(registry: RegistryDep, subject: Scope) -> ModeAnswer:
    """Delete a subject's own mode, so that the global one applies, and return the previous mode."""
    return _delete_mode(registry, settings_scope(subject))


def _set_mode(registry: Registry, scope: str | None, body: ModeBody, *, force: bool) -> ModeAnswer:
    mode = parse_mode(body.mode)
    return ModeAnswer(mode=registry.change(lambda state, _: set_mode(state, scope, mode, force=force)))


def _delete_mode(registry: Registry, scope: str | None) -> ModeAnswer:
    return ModeAnswer(mode=registry.change(lambda state, _: delete_mode(state, scope)))
