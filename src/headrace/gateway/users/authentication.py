"""ASGI middleware that authenticates every request, and gives it the clients of its user.

Credentials come from the Authorization header (Basic, Bearer), from the session of the console's cookie, or
from the client's certificate, for whose principal the gateway creates a delegation token; the brokers decide
whether they are right. A request without credentials gets 401, and a browser that opens a page the login
page. A request with a cookie that changes something needs the session's CSRF token, and has to come from one
of our own pages.
"""

import asyncio
import logging
import time
from collections import Counter
from contextlib import AsyncExitStack
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.client.errors import AuthenticationFailed, ClientError
from headrace.gateway.clients import Clients
from headrace.gateway.current import CLIENTS, PRINCIPAL, SESSION, USER, root_of
from headrace.gateway.guard import SAFE_METHODS
from headrace.gateway.problems import Problem, code_of, refusal
from headrace.gateway.users import cookies
from headrace.gateway.users.attempts import FailedAttempts
from headrace.gateway.users.credentials import BadCredentials, Certificate, Credentials, parse_authorization
from headrace.gateway.users.logins import CannotActFor, Verifier
from headrace.gateway.users.pool import UserPool
from headrace.gateway.users.sessions import Session, Sessions
from headrace.security.principals import Principal

LOGIN: Final = "/ui/login"
LOGOUT: Final = "/ui/logout"
OPEN: Final = frozenset({"/healthz", "/readyz", LOGIN})
OPEN_PREFIX: Final = "/ui/static/"
FAILURE_DELAY_S: Final = 0.3  # before the answer to wrong credentials, in addition to the brokers' own delay

ACCEPTED, FAILED, LIMITED = RESULTS = ("accepted", "failed", "limited")
"""The results of authentications, which are counted. LIMITED: refused after too many failures."""

UNAUTHENTICATED, DENIED, TOO_MANY = 40101, 40301, 42905
# Headers that keep an answer out of caches, and from being taken for a page.
_PRIVATE: Final = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
_CHALLENGES: Final = ('Basic realm="headrace", charset="UTF-8"', 'Bearer realm="headrace"')
_MISSING: Final = "this gateway needs credentials: send an Authorization header (Basic or Bearer)"
_WRONG: Final = (
    "the brokers do not accept these credentials: the user name, the password or the token is wrong"
)
_EXPIRED: Final = "the session has ended: log in again"
_OTHER_SITE: Final = "a page of another site may not use the client's certificate"
_CSRF: Final = "the request has no valid X-CSRF-Token, or does not come from a page of this gateway"

logger = logging.getLogger(__name__)


class Refused(Exception):
    """A request is not served; the message says why."""

    def __init__(self, code: int, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after_s = retry_after_s


class _Identified(NamedTuple):
    credentials: Credentials
    session: Session | None = None
    session_id: str | None = None


class Users:
    """Who may use a gateway: sessions, failed attempts, and the clients of authenticated users."""

    def __init__(self, pool: UserPool, sessions: Sessions, verifier: Verifier) -> None:
        self.pool = pool
        self.sessions = sessions
        self.verifier = verifier
        self.attempts = FailedAttempts()
        self.counts: Counter[str] = Counter()  # authentications by their result

    async def enter(self, stack: AsyncExitStack, credentials: Credentials, address: str) -> Clients:
        """Return the user's clients until the stack ends; Refused if the credentials are not accepted.

        A failure is delayed, counted by address and user, and logged without secrets.
        """
        if not self.pool.is_known(credentials):
            wait_s = self.attempts.wait_s(address, credentials.name, time.monotonic())
            if wait_s > 0:
                self.counts[LIMITED] += 1
                why = "there were too many failed attempts to authenticate: try again later"
                raise Refused(TOO_MANY, why, retry_after_s=wait_s)
        try:
            clients = await stack.enter_async_context(self.pool.clients(credentials))
        except (AuthenticationFailed, BadCredentials) as error:
            why = str(error) if isinstance(error, BadCredentials) else _WRONG
            await self.fail(credentials.name, address, why)
            raise Refused(UNAUTHENTICATED, why) from None
        except CannotActFor as error:
            raise Refused(DENIED, str(error)) from None
        except ClientError as error:  # no broker answers, or TLS to the brokers fails
            logger.warning("brokers cannot be asked about user %.100r: %s", credentials.name, error)
            raise Refused(
                code_of(error), "the gateway does not reach the cluster: its log says why"
            ) from None
        self.counts[ACCEPTED] += 1
        return clients

    async def fail(self, name: str, address: str, why: str) -> None:
        """Count and log a failed attempt, and wait before it is answered."""
        self.counts[FAILED] += 1
        self.attempts.add(address, name, time.monotonic())
        logger.warning("authentication of user %.100r at %s has failed: %s", name, address, why)
        await asyncio.sleep(FAILURE_DELAY_S)


class Authentication:
    """Authenticates requests; only health checks, the login page and its assets are open."""

    def __init__(self, app: ASGIApp, *, users: Users) -> None:
        self._app = app
        self._users = users

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope.get("path", "")
        is_asset = path.startswith(OPEN_PREFIX) and scope.get("method") in SAFE_METHODS
        if scope["type"] != "http" or path in OPEN or is_asset:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        async with AsyncExitStack() as stack:
            try:
                found = await self._identify(scope, headers)
                scope[CLIENTS] = await self._users.enter(stack, found.credentials, address_of(scope))
            except Problem as problem:
                await refusal(problem.code, str(problem))(scope, receive, send)
                return
            except Refused as refused:
                await _answer(scope, headers, refused)(scope, receive, send)
                return
            scope[USER], scope[SESSION] = found.credentials.name, found.session
            await self._app(scope, receive, self._watched(found, send))

    async def _identify(self, scope: Scope, headers: Headers) -> _Identified:
        """Return the request's credentials; Refused if there are none or they may not be used."""
        given = headers.getlist("authorization")
        if given:
            try:
                return _Identified(parse_authorization(given))
            except BadCredentials as error:
                await self._users.fail("(unreadable)", address_of(scope), str(error))
                raise Refused(UNAUTHENTICATED, str(error)) from None
        session_id = cookies.session_id(headers, secure=scope["scheme"] == "https", root=root_of(scope))
        if session_id is not None:
            return self._with_cookie(scope, headers, session_id)
        principal: Principal | None = scope.get("state", {}).get(PRINCIPAL)
        if principal is not None:
            if not cookies.may_read(headers):  # a browser sends a certificate for other sites' pages, too
                raise Refused(DENIED, _OTHER_SITE)
            return _Identified(Certificate(principal))
        raise Refused(UNAUTHENTICATED, _MISSING)

    def _with_cookie(self, scope: Scope, headers: Headers, session_id: str) -> _Identified:
        session = self._users.sessions.find(session_id, time.monotonic())
        if session is None:
            raise Refused(UNAUTHENTICATED, _EXPIRED)
        if scope["method"] in SAFE_METHODS:
            allowed = cookies.may_read(headers)
        else:
            allowed = cookies.comes_from_own_page(headers, scope) and (
                # The form of the logout has its token in the body, which its route checks.
                scope["path"] == LOGOUT or session.accepts(headers.get(cookies.CSRF_HEADER, ""))
            )
        if not allowed:
            raise Refused(DENIED, _CSRF)
        return _Identified(session.credentials, session, session_id)

    def _watched(self, found: _Identified, send: Send) -> Send:
        """Return `send` that ends a stream when the session ends, and marks responses as private."""
        ended = False

        def is_over(session_id: str) -> bool:
            return self._users.sessions.find(session_id, time.monotonic()) is None

        async def send_while_session(message: Message) -> None:
            nonlocal ended
            if message["type"] == "http.response.start":
                if message["status"] == HTTPStatus.UNAUTHORIZED:  # of a broker, with a new connection
                    self._users.pool.doubt(found.credentials)
                names = {name.lower() for name, _ in message["headers"]}
                missing = [header for header in _PRIVATE if header[0] not in names]
                message = {**message, "headers": [*message["headers"], *missing]}
            elif ended:
                raise OSError("the session has ended")
            elif message.get("more_body") and found.session_id is not None and is_over(found.session_id):
                ended = True
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            await send(message)

        return send_while_session


def address_of(scope: Scope) -> str:
    """Return the address of the client, which failed attempts are counted by."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def _answer(scope: Scope, headers: Headers, refused: Refused) -> Response:
    """Return the login page's address for a browser that opens a page, else an error."""
    browser = "sec-fetch-mode" in headers or "text/html" in headers.get("accept", "")
    opens_page = scope["method"] == "GET" and "text/html" in headers.get("accept", "")
    if refused.code == UNAUTHENTICATED and opens_page and headers.get("sec-fetch-dest") != "empty":
        query = scope.get("query_string", b"").decode("latin-1")
        wanted = quote(scope["path"] + (f"?{query}" if query else ""), safe="/")
        return RedirectResponse(f"{root_of(scope)}{LOGIN}?next={wanted}", 303, {"cache-control": "no-store"})
    answer = refusal(refused.code, str(refused))
    if refused.code == UNAUTHENTICATED and not browser:  # a browser would open a dialog of its own
        for challenge in _CHALLENGES:
            answer.headers.append("www-authenticate", challenge)
    if refused.retry_after_s is not None:
        answer.headers["retry-after"] = str(int(refused.retry_after_s) + 1)
    answer.headers["cache-control"] = "no-store"
    return answer
