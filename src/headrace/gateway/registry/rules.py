"""/compatibility, /config and /mode."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Depends, Path, Query
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from headrace.gateway.registry import bodies
from headrace.gateway.registry.media import registry_router
from headrace.gateway.registry.registry import RegistryDep, RightsDep, SchemaRegistry, resolved
from headrace.gateway.registry.rights import SubjectRights
from headrace.registry import configuration, names, refusals
from headrace.registry.formats import Level
from headrace.registry.library import Comparison, Library
from headrace.registry.record_json import config_document
from headrace.registry.records import ConfigValue, Mode, SchemaValue
from headrace.registry.registration import compatible
from headrace.registry.state import LATEST, RegistryState

router = registry_router("rules")

Verbose = Annotated[bool, Query(description="Also return the reasons")]
DefaultToGlobal = Annotated[
    bool,
    Query(
        alias="defaultToGlobal", description="Return the value in force if the subject has none of its own"
    ),
]
Force = Annotated[bool, Query(description="Switch to IMPORT although there are schemas")]


@router.post("/compatibility/subjects/{subject}/versions/{version}", response_model_exclude_none=True)
def check_against_version(
    registry: RegistryDep,
    rights: RightsDep,
    subject: bodies.Subject,
    version: bodies.VersionOf,
    body: bodies.SchemaBody,
    *,
    verbose: Verbose = False,
    normalize: bodies.Normalize = False,
) -> bodies.Compatibility:
    """Return whether a schema is compatible with a version, by the subject's compatibility level."""
    number = bodies.version_number(version)

    def olds(state: RegistryState) -> list[SchemaValue]:
        try:
            return [state.version(resolved(state, subject), number)]
        except refusals.NoSuchSubject:
            if number == LATEST:
                return []
            raise refusals.NoSuchVersion(number) from None

    return _check(registry, rights, subject, body, olds, verbose=verbose, normalize=normalize)


@router.post("/compatibility/subjects/{subject}/versions", response_model_exclude_none=True)
def check_against_all(
    registry: RegistryDep,
    rights: RightsDep,
    subject: bodies.Subject,
    body: bodies.SchemaBody,
    *,
    verbose: Verbose = False,
    normalize: bodies.Normalize = False,
) -> bodies.Compatibility:
    """Return whether a schema could be registered, by the subject's compatibility level."""

    def olds(state: RegistryState) -> list[SchemaValue]:
        return state.versions(resolved(state, subject))

    return _check(registry, rights, subject, body, olds, verbose=verbose, normalize=normalize)


def _check(
    registry: SchemaRegistry,
    rights: SubjectRights,
    subject: str,
    body: bodies.SchemaBody,
    olds: Callable[[RegistryState], list[SchemaValue]],
    *,
    verbose: bool,
    normalize: bool,
) -> bodies.Compatibility:
    submitted = body.submitted()
    rights.check_references(submitted.schema.references, subject)

    def check(state: RegistryState, library: Library) -> list[str] | Comparison:
        versions = olds(state)
        return compatible(state, library, resolved(state, subject), submitted, versions, normalize=normalize)

    try:
        registry.understand(names.normal(subject), submitted.schema)
        messages = registry.ask(check)
    except refusals.Invalid as error:
        if not verbose:
            raise
        messages = [str(error)]
    return bodies.Compatibility(is_compatible=not messages, messages=messages if verbose else None)


class ConfigBody(BaseModel):
    """Settings; those that are not named stay as they are."""

    model_config = ConfigDict(populate_by_name=True, extra="allow")

    compatibility: str | None = Field(default=None, json_schema_extra={"enum": [None, *Level]})
    level: str | None = Field(default=None, alias="compatibilityLevel")
    alias: str | None = None
    normalize: StrictBool | None = None
    group: str | None = Field(default=None, alias="compatibilityGroup")

    def changes(self) -> dict[str, Any]:
        """Return the settings to change; raise NotPermitted for settings that have no effect here."""
        unknown = [name for name, value in (self.model_extra or {}).items() if value not in (None, False)]
        if unknown:
            raise refusals.NotPermitted(f"{', '.join(sorted(unknown))}: such settings are not supported")
        level = self.compatibility if self.compatibility is not None else self.level
        changes = self.model_dump(include={"alias", "normalize", "group"}, exclude_unset=True, by_alias=True)
        return (
            changes
            if level is None
            else {**changes, "compatibilityLevel": str(configuration.parse_level(level))}
        )


class ModeBody(BaseModel):
    """A mode: READWRITE, READONLY, READONLY_OVERRIDE or IMPORT."""

    mode: str = Field(json_schema_extra={"enum": [*Mode]})


class ModeAnswer(BaseModel):
    mode: Mode


def _check_own(own: object, scope: str | None, refusal: type[refusals.Refusal]) -> None:
    if own is None and scope is not None:
        raise refusal(scope)


def _add_config_routes(path: str, scope_of: Callable[..., Awaitable[str | None]]) -> None:
    """Add the routes for the settings of all subjects, or of the subject or context that a path names."""
    ScopeDep = Annotated[str | None, Depends(scope_of)]  # noqa: N806  a type

    @router.get(f"/config{path}")
    def get_config(
        registry: RegistryDep, scope: ScopeDep, *, default_to_global: DefaultToGlobal = False
    ) -> dict[str, Any]:
        """Return the global settings, or those of a subject or a context."""

        def find(state: RegistryState) -> ConfigValue:
            if not default_to_global:
                _check_own(state.settings.config(scope), scope, refusals.NoConfig)
            return state.settings.config_in_force(scope)

        return config_document(registry.read(find))

    @router.put(f"/config{path}")
    def put_config(registry: RegistryDep, scope: ScopeDep, body: ConfigBody) -> dict[str, Any]:
        """Change the settings: the global ones are for all subjects without their own."""
        changes = body.changes()
        made = registry.change(lambda state, _: configuration.set_config(state, scope, changes))
        return config_document(made, level="compatibility")

    @router.delete(f"/config{path}")
    def remove_config(registry: RegistryDep, scope: ScopeDep) -> dict[str, Any]:
        """Delete the settings, and return them: the global ones apply, and globally the level BACKWARD."""
        return config_document(registry.change(lambda state, _: configuration.delete_config(state, scope)))


def _add_mode_routes(path: str, scope_of: Callable[..., Awaitable[str | None]]) -> None:
    """Add the routes for the mode of all subjects, or of the subject or context that a path names."""
    ScopeDep = Annotated[str | None, Depends(scope_of)]  # noqa: N806  a type

    @router.get(f"/mode{path}")
    def get_mode(
        registry: RegistryDep, scope: ScopeDep, *, default_to_global: DefaultToGlobal = False
    ) -> ModeAnswer:
        """Return the global mode, or that of a subject or a context."""

        def find(state: RegistryState) -> Mode:
            if not default_to_global:
                _check_own(state.settings.mode(scope), scope, refusals.NoMode)
            return state.settings.mode_in_force(scope)

        return ModeAnswer(mode=registry.read(find))

    @router.put(f"/mode{path}")
    def put_mode(
        registry: RegistryDep, scope: ScopeDep, body: ModeBody, *, force: Force = False
    ) -> ModeAnswer:
        """Set the mode: the global one is for all subjects without their own."""
        mode = configuration.parse_mode(body.mode)
        return ModeAnswer(
            mode=registry.change(lambda state, _: configuration.set_mode(state, scope, mode, force=force))
        )

    @router.delete(f"/mode{path}")
    def remove_mode(registry: RegistryDep, scope: ScopeDep) -> ModeAnswer:
        """Delete the mode, and return it: the global one applies, and globally READWRITE."""
        return ModeAnswer(mode=registry.change(lambda state, _: configuration.delete_mode(state, scope)))


async def _of_path(
    subject: Annotated[
        str, Path(description="A subject, or a context: `:.billing:`", json_schema_extra={**bodies.PRINTABLE})
    ],
) -> str | None:
    return configuration.settings_scope(subject)


async def _of_all() -> None:
    return None


for _path, _scope_of in (("", _of_all), ("/{subject}", _of_path)):
    _add_config_routes(_path, _scope_of)
    _add_mode_routes(_path, _scope_of)
