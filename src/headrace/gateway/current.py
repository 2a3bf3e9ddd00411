"""What belongs to a request: its user's clients, its cluster, and the names in its path."""

from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

if TYPE_CHECKING:
    from headrace.gateway.clients import Clients

CLIENTS: Final = "headrace.clients"  # in the scope of a request whose user is authenticated
USER: Final = "headrace.user"  # the user's name for logs and pages
PRINCIPAL: Final = "headrace.principal"  # in its `state`: the principal of the client's certificate, or None
SESSION: Final = "headrace.session"  # the session of the console that the request belongs to


# Before the path of every address of the request's cluster: /c/NAME, or nothing.
ROOT: Final = "headrace.root"
CLUSTERS: Final = "headrace.clusters"  # the links of all clusters, if there are several


class ClusterLink(NamedTuple):
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


class RawRoute(APIRoute):
    """A route that splits the path before it decodes it, so that `a%2Fb` is one name with a slash in it.

    It is for names that clients choose freely: groups, consumer instances, subjects. A slash at the end of
    the path is ignored.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        path = raw_path(scope)
        return super().matches(scope) if path is None else self.match_raw(scope, path)

    def match_raw(self, scope: Scope, path: str) -> tuple[Match, Scope]:
        """Match a path that is not decoded yet, and decode the names in it."""
        match, found = super().matches({**scope, "path": path})
        if match is not Match.NONE:
            found["path_params"] = {
                name: unquote(value, errors="surrogateescape") if isinstance(value, str) else value
                for name, value in found["path_params"].items()
            }
        return match, found


def raw_path(scope: Scope) -> str | None:
    """Return the undecoded path of a request without the slash at its end, or None if it is not known."""
    if scope["type"] != "http" or scope.get("raw_path") is None:
        return None
    path: str = scope["raw_path"].decode("latin-1").partition("?")[0].removesuffix("/")
    return path
