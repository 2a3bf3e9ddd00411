"""/contexts, and the registry's cluster and version."""

from typing import Annotated, Any

from fastapi import Path, Query, Response

from headrace import __version__
from headrace.gateway.reach import ReachDep
from headrace.gateway.registry.bodies import Limit, Offset, page
from headrace.gateway.registry.media import registry_router
from headrace.gateway.registry.registry import RegistryDep, RightsDep
from headrace.registry import names
from headrace.registry.deletion import delete_context
from headrace.registry.state import Show

router = registry_router("registry")


@router.get("/contexts")
def list_contexts(
    registry: RegistryDep,
    rights: RightsDep,
    context_prefix: Annotated[str, Query(alias="contextPrefix", description="Prefix of the contexts")] = "",
    offset: Offset = 0,
    limit: Limit = -1,
) -> list[str]:
    """Return the contexts that have subjects; `.` is the default context."""
    found = registry.read(lambda state: state.contexts())
    if rights.restricts:
        subjects = rights.visible(registry.read(lambda state: state.subjects(show=Show.ALL)))
        readable = {names.DEFAULT_CONTEXT, *map(names.context_of, subjects)}
        found = [each for each in found if each in readable]
    return page([each for each in found if each.startswith(context_prefix)], offset, limit)


@router.delete("/contexts/{context}", status_code=204)
def remove_context(
    registry: RegistryDep,
    context: Annotated[str, Path(description="A context without subjects", examples=[".billing"])],
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
