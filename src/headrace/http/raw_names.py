"""Routes whose names are taken apart before they are decoded: `a%2Fb` is one name, and has a slash."""

from typing import Any
from urllib.parse import unquote

from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope


class RawRoute(APIRoute):
    """For names that clients choose as they like: groups, and instances in them.

    A slash at the end says nothing.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        raw = scope.get("raw_path")
        if scope["type"] != "http" or raw is None:
            return super().matches(scope)
        path = raw.decode("latin-1").partition("?")[0].removesuffix("/")
        match, found = super().matches({**scope, "path": path})
        if match is not Match.NONE:
            found["path_params"] = {name: _decoded(value) for name, value in found["path_params"].items()}
        return match, found


def _decoded(value: Any) -> Any:
    return unquote(value, errors="surrogateescape") if isinstance(value, str) else value
