"""How the registry speaks HTTP: its media type, contexts in paths, names with slashes, and error codes.

A client may have a context as part of the registry's URL:

/contexts/.billing/subjects/orders/versions   is   /subjects/:.billing:orders/versions
/contexts/.billing/schemas/ids/1              is   /schemas/ids/1?subject=:.billing:
/contexts/.billing/config                     is   /config/:.billing:
"""

import re
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope

from headrace.client.errors import ClientError
from headrace.gateway.current import RawRoute, clients_of, raw_path
from headrace.gateway.problems import Problem, answers, code_of, retry_after, status_of
from headrace.gateway.registry.registry import in_registry_thread
from headrace.gateway.registry.rights import REQUIRED
from headrace.registry import names
from headrace.registry.refusals import Refusal

MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_JSON: Final = "application/json"
_CONTEXT_PATH: Final = re.compile(
    r"/contexts/([^/]+)(/(?:subjects|schemas|config|mode|compatibility)(?:/.*)?)"
)
_SETTINGS: Final = {"/config", "/mode"}
_LISTS: Final = {"/subjects": "subjectPrefix", "/schemas": "subjectPrefix"}


class RegistryJSON(JSONResponse):
    media_type = MEDIA_TYPE


class RegistryText(Response):
    """The text of a schema, JSON or not, with the same media type as in Confluent's registry."""

    media_type = MEDIA_TYPE


class RegistryRoute(RawRoute):
    """A route of the registry. A plain `def` runs in the registry's own threads.

    Slashes at the end are ignored: clients request `/config/` for the global settings. A body is parsed as
    JSON whatever its content type is: many curl commands send the content type of a form.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        @wraps(endpoint)
        async def in_thread(*args: Any, **kwargs: Any) -> Any:
            return await in_registry_thread(partial(endpoint, *args, **kwargs))

        super().__init__(path, endpoint if iscoroutinefunction(endpoint) else in_thread, **options)
        assert all((method, path) in REQUIRED for method in self.methods or ()), (path, self.methods)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        path = raw_path(scope)
        if path is None:
            return super().matches(scope)
        target = resolve_context(path, scope["query_string"])
        match, found = self.match_raw(scope, target.path)
        if match is not Match.NONE:
            names_in_path = found["path_params"]
            if "subject" in names_in_path and target.context != names.DEFAULT_CONTEXT:
                names_in_path["subject"] = target.qualified(names_in_path["subject"])
            found["query_string"] = target.query
        return match, found

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            try:
                rights = clients_of(request).rights
                if rights.restricts:
                    check = partial(rights.check_route, request.method, self.path, request.path_params)
                    await in_registry_thread(check)
                headers = [pair for pair in request.scope["headers"] if pair[0] != b"content-type"]
                headers.append((b"content-type", _JSON.encode()))
                answer = await handle(Request({**request.scope, "headers": headers}, request.receive))
            except (Refusal, Problem, ClientError) as error:
                answer = _refused(code_of(error), str(error))
            except RequestValidationError as error:
                if any(wrong["loc"][0] == "path" for wrong in error.errors()):
                    # Such as an id that is not a number.
                    answer = _refused(404, "HTTP 404 Not Found")
                else:
                    wrongs = (
                        f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}" for wrong in error.errors()[:5]
                    )
                    answer = _refused(422, "; ".join(wrongs))
            except HTTPException as error:  # FastAPI's 400 is for a body that is not JSON
                answer = _refused(422 if error.status_code == 400 else error.status_code, str(error.detail))
            accepted = request.headers.get("accept", "")
            if _JSON in accepted and "schemaregistry" not in accepted and isinstance(answer, RegistryJSON):
                answer.headers["content-type"] = _JSON
            return answer

        return handler


def registry_router(tag: str) -> APIRouter:
    return APIRouter(
        tags=[tag],
        route_class=RegistryRoute,
        default_response_class=RegistryJSON,
        responses=answers(404, 422, 503),
    )


def _refused(code: int, message: str) -> RegistryJSON:
    status = status_of(code)
    content = {"error_code": code, "message": message.encode(errors="replace").decode()}
    return RegistryJSON(content, status, headers=retry_after(status))


class Target(NamedTuple):
    """A path and a query without a context in front, and that context."""

    path: str
    query: bytes
    context: str

    def qualified(self, subject: str) -> str:
        """Return the subject in this context, unless it names another context."""
        return names.qualified(f":{self.context}:", subject)


def resolve_context(path: str, query: bytes) -> Target:
    """Return the target of a path that is not decoded yet."""
    match = _CONTEXT_PATH.fullmatch(path)
    if match is None:
        return Target(path, query, names.DEFAULT_CONTEXT)
    context, rest = unquote(match[1]).strip(":"), match[2]
    if not context.startswith(".") or context == names.DEFAULT_CONTEXT:
        return Target(rest, query, names.DEFAULT_CONTEXT)
    if rest in _SETTINGS:
        return Target(f"{rest}/:{context}:", query, context)
    parameter = _LISTS.get(rest, "subject" if rest.startswith("/schemas/ids/") else None)
    target = Target(rest, query, context)
    if parameter is None:
        return target
    # The parameter restricts the query to the context.
    given = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    subject = given.get(parameter, "").removeprefix(names.EVERYWHERE)
    return target._replace(query=urlencode({**given, parameter: target.qualified(subject)}).encode())
