"""The login page, and the end of a session."""

import time
from contextlib import AsyncExitStack
from typing import Final
from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from headrace.client.errors import ClientError
from headrace.gateway.console.pages import PageRoute, login_page
from headrace.gateway.current import SESSION, root_of
from headrace.gateway.problems import Problem, status_of
from headrace.gateway.users import cookies
from headrace.gateway.users.authentication import DENIED, LOGIN, LOGOUT, Refused, Users, address_of
from headrace.gateway.users.credentials import BadCredentials, Password, Token

router = APIRouter(route_class=PageRoute, include_in_schema=False)

HOME: Final = "/ui/"
LONGEST_FORM: Final = 64 * 1024
_FOREIGN: Final = "this form was not sent by a page of this gateway: open the login page, and log in there"


@router.get(LOGIN)
async def show_login(request: Request, next: str = HOME) -> Response:  # noqa: A002  a name in addresses
    return await _form(request, local_path(next))


@router.post(LOGIN)
async def log_in(request: Request) -> Response:
    """Begin a session if the brokers accept the credentials, and go to the page that was wanted."""
    users = _users(request)
    fields = await _fields(request)
    target = local_path(fields.get("next", HOME))
    if not cookies.comes_from_own_page(request.headers, request.scope):
        return await _form(request, target, message=_FOREIGN, answer=403)
    try:
        if "token" in fields:
            credentials: Password | Token = Token(fields["token"].strip())
        else:
            credentials = Password(fields.get("user", ""), fields.get("password", ""))
        async with AsyncExitStack() as stack:
            await users.enter(stack, credentials, address_of(request.scope))
    except BadCredentials as error:
        return await _form(request, target, user=fields.get("user", ""), message=str(error), answer=400)
    except Refused as refused:
        status = status_of(refused.code)
        said = f"{str(refused)[:1].upper()}{str(refused)[1:]}."
        return await _form(request, target, user=fields.get("user", ""), message=said, answer=status)
    secure, root = request.url.scheme == "https", root_of(request.scope)
    before = cookies.session_id(request.headers, secure=secure, root=root)
    session_id = users.sessions.begin(credentials, time.monotonic(), instead_of=before)
    headers = {
        "set-cookie": cookies.set_cookie(session_id, secure=secure, root=root),
        "cache-control": "no-store",
    }
    return RedirectResponse(root + target, 303, headers)


@router.post(LOGOUT)
async def log_out(request: Request) -> Response:
    secure, root = request.url.scheme == "https", root_of(request.scope)
    session = request.scope.get(SESSION)
    session_id = cookies.session_id(request.headers, secure=secure, root=root)
    if session is not None and session_id is not None:
        fields = await _fields(request)
        if not session.accepts(fields.get("csrf_token", "")):
            raise Problem(DENIED, "the form has no valid token: reload the page, and log out again")
        _users(request).sessions.end(session_id)
    headers = {"set-cookie": cookies.clear_cookie(secure=secure, root=root), "cache-control": "no-store"}
    return RedirectResponse(root + LOGIN, 303, headers)


def local_path(wanted: str) -> str:
    """Return the path of a page of the console, whatever else the address of the login page asks for."""
    parts = urlsplit(wanted)
    is_ours = not parts.scheme and not parts.netloc and parts.path.startswith(HOME) and "\\" not in wanted
    return wanted if is_ours and wanted.isprintable() and parts.path not in {LOGIN, LOGOUT} else HOME


async def _form(
    request: Request, target: str, *, user: str = "", message: str = "", answer: int = 200
) -> Response:
    try:
        passwords = await run_in_threadpool(_users(request).verifier.accepts_passwords)
    except ClientError:
        passwords, message = True, message or "The cluster does not answer at the moment."
    return login_page(request, answer, next=target, user=user, message=message, passwords=passwords)


async def _fields(request: Request) -> dict[str, str]:
    """Return the fields of a form; a Problem (413) if it is too large."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_FORM:
            raise Problem(413, f"the form has more than {LONGEST_FORM} bytes")
    try:
        found = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=10, errors="strict")
    except ValueError:
        raise Problem(400, "the form cannot be read: expected fields in UTF-8") from None
    return {name: values[0] for name, values in found.items()}


def _users(request: Request) -> Users:
    users = request.app.state.users
    if users is None:
        raise Problem(404, "this gateway has no login: it does not authenticate users")
    assert isinstance(users, Users)
    return users
