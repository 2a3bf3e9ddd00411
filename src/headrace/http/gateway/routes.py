"""Produce and consume over HTTP, in the manner of the Confluent REST proxy."""

from fastapi import APIRouter, FastAPI

from headrace.http.gateway.hub import Hub

router = APIRouter()


def install(app: FastAPI) -> None:
    """Add this part to the gateway."""
    app.state.hub = Hub(app, app.state.reach)
    app.include_router(router)
