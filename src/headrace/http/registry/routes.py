"""The schema registry's REST API, as Confluent's has it."""

from fastapi import FastAPI

from headrace.http.registry import about, rules, schemas, subjects


def install(app: FastAPI) -> None:
    """Add this part to the gateway."""
    for part in (subjects, schemas, rules, about):
        app.include_router(part.router)
