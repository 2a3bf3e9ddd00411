"""Subjects of the schema registry: the list, and one subject with its versions."""

import json
from dataclasses import asdict, dataclass
from difflib import unified_diff
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import RedirectResponse, Response

from headrace.gateway.console.formats import segment
from headrace.gateway.console.pages import PageRoute, page
from headrace.gateway.console.tables import by_attributes, table_of
from headrace.gateway.current import root_of
from headrace.gateway.problems import Problem
from headrace.gateway.registry.bodies import Page
from headrace.gateway.registry.registry import RegistryDep, RightsDep
from headrace.gateway.registry.rights import DESCRIBE
from headrace.gateway.registry.schemas import get_versions_of_id
from headrace.registry.formats import Level
from headrace.registry.records import SchemaKey, SchemaValue
from headrace.registry.state import RegistryState, Show

router = APIRouter(route_class=PageRoute, include_in_schema=False)

USUAL: Final = "http://127.0.0.1:8080"  # the default of --registry
LEVELS: Final = [each.value for each in Level]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    name: str
    type: str
    versions: int
    latest: int
    id: int
    level: str
    deleted: bool


_COLUMNS = by_attributes("name", "type", "versions", "id", "level")


@router.get("/ui/schemas")
def schemas(request: Request, registry: RegistryDep, rights: RightsDep) -> Response:
    deleted = "deleted" in request.query_params
    base = f"{request.url.scheme}://{request.url.netloc}{root_of(request.scope)}"
    found = registry.read(lambda state: _subjects(state, Show.ALL if deleted else Show.LIVE))
    if rights.restricts:
        readable = set(rights.visible(each.name for each in found))
        found = [each for each in found if each.name in readable]
    return page(
        request,
        "schemas.html",
        title="Schemas",
        table=table_of(request, found, _COLUMNS, text=lambda row: f"{row.name} {row.type}", sort="name"),
        deleted=deleted,
        level=registry.read(lambda state: state.settings.config_in_force(None).compatibility),
        base=base,
        registry="" if base == USUAL else f" --registry {base}",
    )


@router.get("/ui/schema-ids/{schema_id}")
def schema_of_id(
    request: Request,
    registry: RegistryDep,
    rights: RightsDep,
    schema_id: Annotated[int, Path(ge=0, le=2**31 - 1)],
    subject: Annotated[str, Query(max_length=1000)] = "",
) -> Response:
    """Redirect to a version with this schema: that of `subject`, if it has one."""
    found = get_versions_of_id(registry, rights, schema_id=schema_id, show=Show.LIVE, page=Page())
    if not found:
        raise Problem(404, f"there is no schema {schema_id} in the registry")
    best = next((each for each in found if each.subject == subject), found[0])
    at = f"{root_of(request.scope)}/ui/schemas/{segment(best.subject)}"
    return RedirectResponse(f"{at}?version={best.version}")


def _subjects(state: RegistryState, show: Show) -> list[Subject]:
    rows = []
    for name in state.subjects(show=show):
        versions = state.versions(name) or state.versions(name, Show.ALL)
        rows.append(
            Subject(
                name=name,
                type=versions[-1].schema.type.value,
                versions=len(versions),
                latest=versions[-1].version,
                id=versions[-1].id,
                level=str(state.settings.config_in_force(name).compatibility),
                deleted=versions[-1].deleted,
            )
        )
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _SubjectView:
    versions: list[SchemaValue]
    shown: SchemaValue
    referrers: list[SchemaValue]
    level: str
    own_level: bool
    mode: str


Number = Annotated[int | None, Query(ge=1, le=2**31 - 1)]


@router.get("/ui/schemas/{name:path}")
def subject(
    request: Request,
    name: Annotated[str, Path(min_length=1, max_length=1000)],
    registry: RegistryDep,
    rights: RightsDep,
    *,
    version: Number = None,
    against: Number = None,
) -> Response:
    """Show the latest version, or the requested one, by itself or compared with another."""
    rights.check(DESCRIBE, name)
    known = registry.read(lambda state: _known(state, name, version))
    other = None
    if against is not None:
        other = next((each for each in known.versions if each.version == against), None)
        if other is None:
            raise Problem(40402, f"{name} has no version {against}")
    text = readable(known.shown.schema.text)
    return page(
        request,
        "subject.html",
        title=name,
        name=name,
        known=known,
        newest=max(each.version for each in known.versions),
        text=text,
        other=other,
        lines=None if other is None else differences(readable(other.schema.text), text),
        levels=LEVELS,
        live=[each for each in known.versions if not each.deleted],
        references=[asdict(reference) for reference in known.shown.schema.references],
    )


def _known(state: RegistryState, name: str, version: int | None) -> _SubjectView:
    subject_name = state.settings.resolve_alias(name)
    versions = state.versions(subject_name, Show.ALL)
    live = [each for each in versions if not each.deleted]
    wanted = (live or versions)[-1].version if version is None and versions else version or -1
    shown = state.version(subject_name, wanted, Show.ALL)
    return _SubjectView(
        versions=versions[::-1],
        shown=shown,
        referrers=state.referrers(SchemaKey(subject_name, shown.version)),
        level=str(state.settings.config_in_force(subject_name).compatibility),
        own_level=getattr(state.settings.config(subject_name), "compatibility", None) is not None,
        mode=str(state.settings.mode_in_force(subject_name)),
    )


CONTEXT: Final = 3  # unchanged lines around a difference
LONGEST_DIFF: Final = 5000  # most lines that are compared


@dataclass(frozen=True, slots=True)
class Line:
    """A line of both schemas (""), only of the new (plus) or the old one (minus), or a position (skipped)."""

    kind: str
    text: str


def readable(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def differences(old: str, new: str) -> list[Line]:
    """Return the lines of both texts, without long unchanged parts."""
    before, after = old.splitlines()[:LONGEST_DIFF], new.splitlines()[:LONGEST_DIFF]
    _from, _to, *lines = [*unified_diff(before, after, n=CONTEXT, lineterm="")] or ["", "", "@@ the same @@"]
    kinds = {"+": "plus", "-": "minus", " ": ""}
    return [Line(kinds[line[0]], line[1:]) if line[0] in kinds else Line("skipped", line) for line in lines]
