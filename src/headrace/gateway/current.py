"""The clients that act for the user of a request."""

from typing import TYPE_CHECKING, Final, NamedTuple

from fastapi import Request
from starlette.types import Scope

if TYPE_CHECKING:
    from headrace.gateway.clients import Clients

CLIENTS: Final = "headrace.clients"  # in the scope of a request whose user is authenticated
USER: Final = "headrace.user"  # the user's name for logs and pages
PRINCIPAL: Final = "headrace.principal"  # in its `state`: the principal of the client's certificate, or None
SESSION: Final = "headrace.session"  # the session of the console that the request belongs to


ROOT: Final = (
    "headrace.root"  # before the path of every address of the request's cluster: /c/NAME, or nothing
)
CLUSTERS: Final = "headrace.clusters"  # the links of all clusters, if there are several


class ClusterLink(NamedTuple):
    """A cluster that this gateway serves."""

    name: str
    root: str


def root_of(scope: Scope) -> str:
    """Return what addresses of the request's cluster begin with."""
    root: str = scope.get(ROOT, "")
    return root


def base_url(request: Request) -> str:
    """Return the address of the request's cluster, as the client knows it; it ends with a slash."""
    return f"{str(request.base_url).rstrip('/')}{root_of(request.scope)}/"


def clients_of(request: Request) -> "Clients":
    """Return the clients of the request's user.

    Without authentication all requests share the gateway's own. With it, the gateway's own are never used for
    a request: `everyone` is None.
    """
    found: Clients | None = request.scope.get(CLIENTS) or request.app.state.everyone
    assert found is not None, request.url.path
    return found
