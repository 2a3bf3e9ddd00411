"""Routes that split the path before they decode it, so that `a%2Fb` is one name with a slash in it."""

from typing import Any
from urllib.parse import unquote

from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope


class RawRoute(APIRoute):
    """For names that clients choose freely: groups, consumer instances, subjects.

    A slash at the end of the path is ignored.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        path = raw_path(scope)
        return super().matches(scope) if path is None else self.match_raw(scope, path)

    def match_raw(self, scope: Scope, path: str) -> tuple[Match, Scope]:
        """Match a path that is not decoded yet, and decode the names in it."""
        match, found = super().matches({**scope, "path": path})
        if match is not Match.NONE:
            found["path_params"] = {name: _decoded(value) for name, value in found["path_params"].items()}
        return match, found


def raw_path(scope: Scope) -> str | None:
    """Return the undecoded path of a request without the slash at its end, or None if it is not known."""
    if scope["type"] != "http" or scope.get("raw_path") is None:
        return None
    path: str = scope["raw_path"].decode("latin-1").partition("?")[0].removesuffix("/")
    return path


def _decoded(value: Any) -> Any:
    return unquote(value, errors="surrogateescape") if isinstance(value, str) else value
