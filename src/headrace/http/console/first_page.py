"""The page that people see first, and what all pages are drawn with: a gateway may be started by it."""

from fastapi import FastAPI

from headrace.http.console import assets
from headrace.http.console.views import cluster


def install(app: FastAPI) -> None:
    """Add these to the gateway."""
    for part in (assets, cluster):
        app.include_router(part.router)
