"""The API page: all operations of the OpenAPI document by tag, with examples of bodies."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from shlex import quote
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from headrace.gateway.console.pages import PageRoute, page
from headrace.gateway.console.tables import LONGEST
from headrace.gateway.current import root_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)

VERBS: Final = ("get", "post", "put", "patch", "delete")
DEEPEST: Final = 6  # nested objects of an example
OTHERS: Final = "other"
_OWN_TAGS: Final = ("cluster", "brokers", "topics", "messages", "groups", "transactions")
FIRST: Final = (*_OWN_TAGS, "users", "ACLs", "quotas", "pipelines")

Document = Mapping[str, Any]


@router.get("/docs")  # where programmers look for the OpenAPI page of a FastAPI application
@router.get("/ui/api")
def api(request: Request) -> Response:
    query = request.query_params.get("q", "").strip()[:LONGEST]
    every = operations(request.app.openapi())
    words = query.lower().split()
    shown = {
        tag: [
            each
            for each in found
            if all(word in f"{tag} {each.verb} {each.path} {each.summary}".lower() for word in words)
        ]
        for tag, found in every.items()
    }
    return page(
        request,
        "api.html",
        title="API",
        query=query,
        tags={tag: found for tag, found in shown.items() if found},
        total=sum(map(len, every.values())),
        base=f"{request.url.scheme}://{request.url.netloc}{root_of(request.scope)}",
        curl=curl,
        phrase=phrase,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter in the path, in the query, or a header."""

    name: str
    where: str
    required: bool
    type: str
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A method of a path."""

    verb: str
    path: str
    summary: str
    about: str
    parameters: tuple[Parameter, ...]
    body: str  # an example, or an empty string
    media: str
    answer: str  # an example of the response
    statuses: tuple[tuple[str, str], ...]


def operations(document: Document) -> dict[str, list[Operation]]:
    """Return every operation by the last of its tags, the gateway's own API first."""
    found: dict[str, list[Operation]] = {}
    for path, item in document.get("paths", {}).items():
        for verb in VERBS:
            if verb in item:
                tag = (item[verb].get("tags") or [OTHERS])[-1]
                found.setdefault(tag, []).append(_operation(document, verb, path, item[verb]))
    ranks = {tag: rank for rank, tag in enumerate(FIRST)}
    return dict(sorted(found.items(), key=lambda item: ranks.get(item[0], len(FIRST))))


def _operation(document: Document, verb: str, path: str, described: Mapping[str, Any]) -> Operation:
    media, body = _content(document, described.get("requestBody", {}).get("content", {}))
    good: Mapping[str, Any] = next(
        (each for code, each in described.get("responses", {}).items() if code.startswith("2")), {}
    )
    return Operation(
        verb=verb,
        path=path,
        summary=described.get("summary", ""),
        about=described.get("description", ""),
        parameters=tuple(_parameter(document, each) for each in described.get("parameters", ())),
        body=body,
        media=media,
        answer=_content(document, good.get("content", {}))[1],
        statuses=tuple(
            (code, each.get("description", ""))
            for code, each in sorted(described.get("responses", {}).items())
        ),
    )


def curl(operation: Operation, base: str) -> str:
    """Return the curl command of an operation."""
    parts = ["curl"]
    if operation.verb != "get":
        parts.append(f"-X {operation.verb.upper()}")
    parts.append(quote(f"{base}{operation.path}"))
    if operation.body:
        body = json.dumps(json.loads(operation.body))
        parts += [f"-H {quote(f'content-type: {operation.media}')}", f"-d {quote(body)}"]
    return " ".join(parts)


def _parameter(document: Document, described: Mapping[str, Any]) -> Parameter:
    schema = described.get("schema", {})
    return Parameter(
        name=described["name"],
        where=described["in"],
        required=described.get("required", False),
        type=_type(document, schema),
        about=described.get("description", schema.get("description", "")),
    )


def _content(document: Document, content: Mapping[str, Any]) -> tuple[str, str]:
    for media, described in content.items():
        example = described.get("example", _example(document, described.get("schema", {}), DEEPEST))
        return media, "" if example is None else json.dumps(example, indent=2, ensure_ascii=False)
    return "", ""


def _resolved(document: Document, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _options(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the alternatives of a schema, except null."""
    for each in [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]:
        if each.get("type") != "null":
            yield each


def _type(document: Document, schema: Mapping[str, Any]) -> str:
    schema = _resolved(document, schema)
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    options = [_type(document, option) for option in _options(schema)]
    if options:
        return " or ".join(dict.fromkeys(options))
    if schema.get("type") == "array":
        return f"list of {_type(document, schema.get('items', {}))}"
    return str(schema.get("type", "anything"))


def _example(document: Document, schema: Mapping[str, Any], deep: int) -> Any:
    """Return an example of a schema: its own, its default, or the simplest value."""
    schema = _resolved(document, schema)
    if schema.get("examples"):
        return schema["examples"][0]
    for key in ("example", "const"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    option = next(_options(schema), None)
    if option is not None:
        return _example(document, option, deep)
    return _plain(document, schema, deep)


def _plain(document: Document, schema: Mapping[str, Any], deep: int) -> Any:
    match schema.get("type"):
        case "object" if deep:
            known = schema.get("properties", {})
            return {name: _example(document, each, deep - 1) for name, each in known.items()}
        case "array" if deep:
            one = _example(document, schema.get("items", {}), deep - 1)
            return [] if one is None else [one]
        case "object":
            return {}
        case "array":
            return []
        case "integer" | "number":
            return schema.get("default") or 0
        case "boolean":
            return bool(schema.get("default"))
        case "string":
            return schema.get("default") or "string"
    return schema.get("default")


def phrase(code: str) -> str:
    """Return the phrase of a status code."""
    try:
        return HTTPStatus(int(code)).phrase
    except ValueError:
        return ""
