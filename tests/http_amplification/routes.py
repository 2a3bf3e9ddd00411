"""Every operation of the gateway, out of its own description and its table of routes."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from headrace.gateway.app import create_app
from headrace.gateway.configuration import GatewaySettings

ENDLESS: Final = ("/tail", "/live", "/events")  # answers that have no end
FRAMEWORK: Final = (
    "/docs",
    "/redoc",
    "/openapi.json",
)  # of FastAPI's, which the gateway does not have or is static


@dataclass(frozen=True, slots=True)
class Operation:
    """A method and a path with the names of its parts, its query and its body as OpenAPI has them."""

    method: str
    path: str
    parts: tuple[str, ...] = ()
    query: tuple[str, ...] = ()
    media_types: tuple[str, ...] = ()
    body: Any = None  # a JSON schema, with no $ref left at its top

    @property
    def label(self) -> str:
        return f"{self.method} {self.path}"


@cache
def operations() -> tuple[list[Operation], dict[str, Any]]:
    """All of them, and the schemas that their bodies refer to."""
    app = create_app(GatewaySettings(bootstrap="127.0.0.1:1"))
    described = app.openapi()
    found = list(_described(described))
    known = {each.label for each in found}
    found += [
        each for each in _routed(app) if each.label not in known
    ]  # the console's pages are not described
    found = [each for each in found if not each.path.endswith(ENDLESS) and each.path not in FRAMEWORK]
    return found, described.get("components", {}).get("schemas", {})


def _described(openapi: dict[str, Any]) -> Iterator[Operation]:
    for path, methods in openapi["paths"].items():
        for method, said in methods.items():
            content = said.get("requestBody", {}).get("content", {})
            parameters = said.get("parameters", ())
            yield Operation(
                method.upper(),
                path,
                parts=tuple(each["name"] for each in parameters if each["in"] == "path"),
                query=tuple(each["name"] for each in parameters if each["in"] == "query"),
                media_types=tuple(content),
                body=next((each.get("schema") for each in content.values()), None),
            )


def _routed(app: FastAPI) -> Iterator[Operation]:
    for context in iter_route_contexts(app.router.routes):
        for method in sorted((context.methods or set()) - {"HEAD"}):
            path = context.path_format or context.path
            if path is not None:
                parts = tuple(piece.split("}")[0].split(":")[0] for piece in path.split("{")[1:])
                yield Operation(method, path.replace(":path}", "}"), parts=parts)
