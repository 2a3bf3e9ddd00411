"""How the registry speaks HTTP: its media type, names with slashes in them, refusals in its own words."""

from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope

from headrace.client.errors import ClientError
from headrace.http.problems import Problem, code_of, retry_after
from headrace.http.registry.threads import in_its_threads
from headrace.http.registry.within import unfolded
from headrace.registry import names
from headrace.registry.refusals import Refusal

MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_JSON: Final = "application/json"
_STATUS: Final = {status.value: status for status in HTTPStatus}


class RegistryJSON(JSONResponse):
    """JSON, by the name that clients of registries expect."""

    media_type = MEDIA_TYPE


class RegistryText(Response):
    """A schema as it is, be it JSON or not: by the same name, as Confluent's registry has it."""

    media_type = MEDIA_TYPE


class RegistryRoute(APIRoute):
    """A route whose names are taken apart before they are decoded: `a%2Fb` is one name, and has a slash.

    A slash at the end says nothing: clients that are asked for the settings of no subject say `/config/`.
    A body is JSON, whatever its content type says: half of all curl commands say it is a form. What is a
    plain `def` runs in the registry's own threads.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **more: Any) -> None:
        super().__init__(path, in_its_threads(endpoint), **more)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        raw = scope.get("raw_path")
        if scope["type"] != "http" or raw is None:
            return super().matches(scope)
        path = raw.decode("latin-1").partition("?")[0].removesuffix("/")
        asked = unfolded(path, scope["query_string"])
        match, found = super().matches({**scope, "path": asked.path})
        if match is not Match.NONE:
            parts = {name: _decoded(value) for name, value in found["path_params"].items()}
            if "subject" in parts and asked.context != names.DEFAULT_CONTEXT:
                parts["subject"] = asked.qualified(parts["subject"])
            found.update(path_params=parts, query_string=asked.query)
        return match, found

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            try:
                answer = await handle(_with_json_body(request))
            except Refusal as error:
                answer = _refused(error.status, error.code, str(error))
            except Problem as error:
                answer = _refused(error.status, error.code, str(error))
            except ClientError as error:
                answer = _refused(*code_of(error), str(error))
            except RequestValidationError as error:
                answer = _invalid(error)
            except HTTPException as error:  # FastAPI's 400 is for a body that is no JSON
                status = 422 if error.status_code == HTTPStatus.BAD_REQUEST else error.status_code
                answer = _refused(_STATUS[status], status, str(error.detail))
            accepted = request.headers.get("accept", "")
            if _JSON in accepted and "schemaregistry" not in accepted and isinstance(answer, RegistryJSON):
                answer.headers["content-type"] = _JSON
            return answer

        return handler


def _decoded(value: Any) -> Any:
    return unquote(value, errors="surrogateescape") if isinstance(value, str) else value


def _with_json_body(request: Request) -> Request:
    headers = [each for each in request.scope["headers"] if each[0] != b"content-type"]
    headers.append((b"content-type", _JSON.encode()))
    return Request({**request.scope, "headers": headers}, request.receive)


def _refused(status: int, code: int, message: str) -> RegistryJSON:
    printable = message.encode(errors="replace").decode()
    content = {"error_code": code, "message": printable}
    return RegistryJSON(content, _STATUS[int(status)], headers=retry_after(status))


def _invalid(error: RequestValidationError) -> RegistryJSON:
    if any(each["loc"][0] == "path" for each in error.errors()):  # an id that is no number is nowhere
        return _refused(HTTPStatus.NOT_FOUND, 404, "HTTP 404 Not Found")
    said = "; ".join(
        f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}" for each in error.errors()[:5]
    )
    return _refused(HTTPStatus.UNPROCESSABLE_ENTITY, 422, said)
