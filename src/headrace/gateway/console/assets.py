"""Style sheets, scripts and images: cached for good by browsers, under a path that changes with them."""

import hashlib
import mimetypes
from functools import cache
from pathlib import Path
from typing import Final

from fastapi import APIRouter
from fastapi.responses import Response

from headrace.gateway.problems import Problem

_HERE: Final = Path(__file__).parent / "static"
_TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

router = APIRouter(include_in_schema=False)


@cache
def _assets() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(_HERE.iterdir()) if path.is_file()}


@cache
def version() -> str:
    """Return the version of all assets together: modules import each other by relative paths."""
    digest = hashlib.sha256()
    for name, content in _assets().items():
        digest.update(f"{name} {len(content)} ".encode() + content)
    return digest.hexdigest()[:12]


def asset(name: str) -> str:
    if name not in _assets():
        raise KeyError(name)
    return f"/ui/static/{version()}/{name}"


@router.get("/ui/static/{path:path}")
async def static(path: str) -> Response:
    """Return an asset. For another version it is the current one, which the browser may not cache.

    This route has all paths that need no login, so that none of them leads to a page of a user.
    """
    requested, _, name = path.partition("/")
    content = _assets().get(name)
    if content is None:
        raise Problem(404, f"there is no asset {path}")
    suffix = Path(name).suffix
    kind = _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    kept = "public, max-age=31536000, immutable" if requested == version() else "no-cache"
    return Response(
        content, media_type=kind, headers={"Cache-Control": kept, "X-Content-Type-Options": "nosniff"}
    )
