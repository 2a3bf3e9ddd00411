"""The pages for people, under /ui."""

from fastapi import APIRouter, FastAPI

router = APIRouter()


def install(app: FastAPI) -> None:
    """Add this part to the gateway."""
    app.include_router(router)
