"""Pages: templates that escape everything, and headers that allow nothing from other sites."""

import logging
import re
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from shlex import quote
from typing import Any, Final

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from headrace import __version__
from headrace.client.errors import ClientError, Unreachable
from headrace.client.wire.security import PLAINTEXT
from headrace.gateway.console import formats
from headrace.gateway.console.assets import asset
from headrace.gateway.current import CLUSTERS, SESSION, USER, clients_of, root_of
from headrace.gateway.problems import DENIED, Problem, code_of, status_of
from headrace.gateway.users.sessions import Session
from headrace.registry.refusals import Refusal
from headrace.security.authorization import Operation
from headrace.security.principals import Principal

logger = logging.getLogger(__name__)

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}
USUAL: Final = "127.0.0.1:9092"  # the default of --bootstrap
_BROKEN: Final = re.compile(r"[^._]*[._]|[^._]+")  # parts of a name that end with a dot or an underscore
THEMES: Final = {"light", "dark"}


def page(request: Request, template: str, *, title: str, answer: int = 200, **context: Any) -> HTMLResponse:
    reach = clients_of(request).reach
    # The options with which the commands on a page reach the cluster.
    at = "" if reach.bootstrap == USUAL else f" --bootstrap {reach.bootstrap}"
    if reach.settings.security != PLAINTEXT:
        at += " --command-config client.properties"
    session: Session | None = request.scope.get(SESSION)
    html = _rendered(
        request,
        template,
        title=title,
        path=request.url.path,
        bootstrap=reach.bootstrap,
        at=at,
        version=__version__,
        user=request.scope.get(USER),
        csrf_token="" if session is None else session.csrf_token,
        **context,
    )
    return HTMLResponse(html, answer, HEADERS)


def login_page(request: Request, answer: int, **context: Any) -> HTMLResponse:
    html = _rendered(request, "login.html", **context)
    return HTMLResponse(html, answer, HEADERS | {"Cache-Control": "no-store"})


def _rendered(request: Request, template: str, **context: Any) -> str:
    theme = request.cookies.get("theme", "")
    return (
        _environment()
        .get_template(template)
        .render(
            theme=theme if theme in THEMES else "",
            root=root_of(request.scope),
            clusters=request.scope.get(CLUSTERS, ()),
            **context,
        )
    )


class Denied(Exception):
    """The brokers refuse the requests of a page: its user needs `operation` on the cluster."""

    def __init__(self, title: str, operation: Operation) -> None:
        super().__init__(f"{title} needs {operation.name} on CLUSTER")
        self.title, self.operation = title, operation


@contextmanager
def requiring(title: str, operation: Operation) -> Iterator[None]:
    """Raise Denied if brokers refuse a request because the user has no ACL for it."""
    try:
        yield
    except ClientError as error:
        if error.error_code not in DENIED:
            raise
        raise Denied(title, operation) from error


class PageRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except Unreachable as error:
                title = "The cluster does not answer"
                return page(request, "unreachable.html", title=title, answer=503, message=str(error))
            except Denied as denied:
                return _denied(request, denied)
            except (Problem, Refusal, ClientError) as error:
                return _error_page(request, code_of(error), str(error))
            except HTTPException as error:
                return _error_page(request, error.status_code, str(error.detail))
            except RequestValidationError as error:
                why = "; ".join(f"{each['loc'][-1]}: {each['msg']}" for each in error.errors()[:5])
                return _error_page(request, 422, why)
            except ClientDisconnect:
                raise
            except Exception as error:
                logger.exception("%s failed", request.url.path)
                why = f"the gateway failed: {type(error).__name__}; see its log"
                return _error_page(request, 500, why)

        return answer


def _denied(request: Request, denied: Denied) -> Response:
    """Return the page that says which permission is missing, and how an administrator can give it."""
    user = request.scope.get(USER)
    option = denied.operation.name.lower().replace("_", "-")
    who = "User:NAME" if user is None else quote(str(Principal(user)))
    return page(
        request,
        "denied.html",
        title=denied.title,
        answer=403,
        operation=denied.operation.name,
        command=f"headrace acl allow {who} --cluster --operation {option}",
    )


def _error_page(request: Request, code: int, message: str) -> Response:
    status = status_of(code)
    return page(request, "error.html", title=status.phrase, answer=status, message=message)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": formats.number,
        "rate": formats.rate,
        "size": formats.size,
        "span": formats.span,
        "took": formats.took,
        "stamp": formats.stamp,
        "iso": formats.iso,
        "segment": formats.segment,
        "ticks": _ticks,
        "dotted": _dotted,
    }
    environment.globals |= {"asset": asset, "plural": formats.plural, "meaning": formats.meaning}
    return environment


def _dotted(name: str) -> Markup:
    """Return a long name that may be broken after its dots and underscores."""
    return Markup("").join(Markup("{}<wbr>").format(each) for each in _BROKEN.findall(str(name)))


def _ticks(text: str) -> Markup:
    """Return escaped text, with what is between backticks as code."""
    parts = [escape(each) for each in text.split("`")]
    marked = (Markup("<code>{}</code>").format(each) if at % 2 else each for at, each in enumerate(parts))
    return Markup("").join(marked)
