"""Several clusters at one address: the first at the root, each other one under /c/NAME."""

import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Final

from fastapi import FastAPI
from starlette.responses import RedirectResponse
from starlette.types import Receive, Scope, Send

from headrace.client.errors import BadSetting
from headrace.gateway.current import CLUSTERS, ROOT, ClusterLink

PREFIX: Final = "/c/"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_NO_NAMES: Final = frozenset({"ui", "api", "c"})  # parts of addresses


def check_name(name: str) -> str:
    """Return the name of a cluster; BadSetting if it cannot be a part of addresses."""
    if not _NAME.fullmatch(name) or name.lower() in _NO_NAMES:
        raise BadSetting(
            f"{name[:50]!r} cannot be the name of a cluster: expected up to 40 letters, digits, hyphens and "
            f"underscores, and not {', '.join(sorted(_NO_NAMES))}"
        )
    return name


class SeveralClusters:
    """An ASGI app that passes every request to the app of its cluster.

    The app of a cluster sees addresses without the prefix, which is in its scope as ROOT.
    """

    def __init__(self, apps: Mapping[str, FastAPI]) -> None:
        self._apps = dict(apps)
        self._default = next(iter(self._apps))
        self._links = [ClusterLink(name, self._root(name)) for name in self._apps]

    def _root(self, name: str) -> str:
        return "" if name == self._default else PREFIX + name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        raw: bytes | None = scope.get("raw_path")
        path: str = scope["path"]
        # A prefix with escapes, in which the raw path differs, is not one of ours.
        raw_path = path if raw is None else raw.decode("latin-1").partition("?")[0]
        name = raw_path.removeprefix(PREFIX).partition("/")[0] if raw_path.startswith(PREFIX) else ""
        if name in self._apps:
            path = path.removeprefix(PREFIX + name) or "/"
        else:
            name = self._default
        if name == self._default and path != scope["path"]:
            query = scope["query_string"].decode("latin-1")
            local = f"/{path.lstrip('/')}"  # two slashes would begin the address of another host
            away = RedirectResponse(local + (f"?{query}" if query else ""))
            await away(scope, receive, send)
            return
        root = self._root(name)
        inner = {**scope, "path": path, ROOT: root, CLUSTERS: self._links}
        if raw is not None:
            inner["raw_path"] = raw[len(root) :] or b"/"
        await self._apps[name](inner, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as stack:
            await receive()
            for app in self._apps.values():
                await stack.enter_async_context(app.router.lifespan_context(app))
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})
