"""The cookie of a session, and which requests may use it. Pure."""

from http.cookies import CookieError, SimpleCookie
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Scope

from headrace.gateway.guard import ALLOWED_ORIGIN

NAME: Final = "headrace-session"
SECURE_NAME: Final = "__Host-headrace-session"  # browsers accept this name only from HTTPS, for one host
CSRF_HEADER: Final = "x-csrf-token"
_SAME_SITE: Final = frozenset({"same-origin", "none"})  # none: an address that somebody has typed


def _name(*, secure: bool, root: str) -> str:
    """Return the name of the cookie: each cluster of a gateway has its own sessions."""
    name = SECURE_NAME if secure else NAME
    return f"{name}-{root.rpartition('/')[2]}" if root else name


def session_id(headers: Headers, *, secure: bool, root: str = "") -> str | None:
    """Return the id of the session in a request's cookies, for the cluster at `root`."""
    name = _name(secure=secure, root=root)
    for header in headers.getlist("cookie"):
        try:
            found = SimpleCookie(header).get(name)
        except CookieError:
            continue
        if found is not None and found.value:
            return found.value
    return None


def set_cookie(value: str, *, secure: bool, root: str = "") -> str:
    """Return the Set-Cookie header of a session; it has no expiry, so the browser forgets it at its end."""
    name = _name(secure=secure, root=root)
    return f"{name}={value}; Path=/; HttpOnly; SameSite=Strict{'; Secure' if secure else ''}"


def clear_cookie(*, secure: bool, root: str = "") -> str:
    """Return the Set-Cookie header that makes a browser forget its session."""
    return f"{set_cookie('', secure=secure, root=root)}; Max-Age=0"


def comes_from_own_page(headers: Headers, scope: Scope) -> bool:
    """Return whether a browser says that one of our own pages sends this request.

    Every browser sends Origin with requests that change something, and all current ones Sec-Fetch-Site. Guard
    has compared the Origin with our host before; here it may not be missing.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    return origin is not None and (
        origin == f"{scope['scheme']}://{headers.get('host', '')}" or scope.get(ALLOWED_ORIGIN) is True
    )


def may_read(headers: Headers) -> bool:
    """Return whether a browser does not say that another site's page reads this with our cookie."""
    return headers.get("sec-fetch-site", "same-origin") in _SAME_SITE
