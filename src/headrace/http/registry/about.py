"""/contexts, and what the registry says about itself."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from headrace import __version__
from headrace.http.problems import answers
from headrace.http.reach import SILENCE_S, Reached
from headrace.http.registry.bodies import Limit, Offset, page
from headrace.http.registry.media import RegistryJSON, RegistryRoute
from headrace.http.registry.registry import Asked
from headrace.http.registry.subjects import INVALID
from headrace.registry import names
from headrace.registry.deletion import delete_context

router = APIRouter(tags=["registry"], route_class=RegistryRoute, default_response_class=RegistryJSON)


@router.get("/contexts", responses=INVALID)
def list_contexts(
    registry: Asked,
    context_prefix: Annotated[str, Query(alias="contextPrefix", description="What they begin with")] = "",
    offset: Offset = 0,
    limit: Limit = -1,
) -> list[str]:
    """The contexts that subjects are in: `.` is the one without a name."""
    found = registry.ask(lambda state, _: state.contexts())
    return page([each for each in found if each.startswith(context_prefix)], offset, limit)


@router.delete("/contexts/{context}", status_code=HTTPStatus.NO_CONTENT, responses=INVALID)
def remove_context(
    registry: Asked,
    context: Annotated[str, Path(description="A context without subjects", examples=[".billing"])],
) -> Response:
    """Forget a context."""
    name = names.context_of(context) if context.startswith(":") else context
    registry.change(lambda state, _: delete_context(state, name))
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.get("/v1/metadata/id", responses=answers(HTTPStatus.SERVICE_UNAVAILABLE))
def get_cluster_id(reach: Reached) -> dict[str, Any]:
    """Which cluster the registry belongs to."""
    with reach.brokers(SILENCE_S) as brokers:
        cluster = brokers.metadata().cluster_id or ""
    scope = {"kafka-cluster": cluster, "schema-registry-cluster": "schema-registry"}
    return {"scope": {"path": [], "clusters": scope}, "id": ""}


@router.get("/v1/metadata/version")
def get_server_version() -> dict[str, str]:
    """Which version of which registry this is."""
    return {"version": __version__, "commitId": "headrace"}
