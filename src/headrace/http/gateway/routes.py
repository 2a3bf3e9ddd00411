"""Produce and consume over HTTP, in the manner of the Confluent REST proxy."""

from fastapi import APIRouter, FastAPI

router = APIRouter()


def install(app: FastAPI) -> None:
    """Add this part to the gateway."""
    app.include_router(router)
