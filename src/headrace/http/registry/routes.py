"""The schema registry's REST API, as Confluent's has it."""

from fastapi import FastAPI

from headrace.http.registry import about, rules, schemas, subjects
from headrace.http.registry.registry import Registry


def install(app: FastAPI) -> None:
    """Add this part to the gateway; `app.state.registry` is the registry, for the other parts."""
    app.state.registry = Registry(app.state.reach)
    for part in (subjects, schemas, rules, about):
        app.include_router(part.router)
