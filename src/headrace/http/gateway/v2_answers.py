"""How the REST proxy, v2, answers: in its media types, refusals as everywhere."""

from http import HTTPStatus
from typing import Any

from headrace.http.gateway.media import PLAIN, V2
from headrace.http.problems import answers


def v2(*refusals: HTTPStatus, status: int = HTTPStatus.OK) -> dict[int | str, dict[str, Any]]:
    """For a route's `responses`: its answer is in either media type, and it may refuse with these."""
    content: dict[int | str, dict[str, Any]] = {int(status): {"content": {PLAIN: {}, V2: {}}}}
    if status == HTTPStatus.NO_CONTENT:
        content = {}
    return content | answers(HTTPStatus.NOT_ACCEPTABLE, HTTPStatus.SERVICE_UNAVAILABLE, *refusals)
