"""Produce and consume over HTTP, in the manner of the Confluent REST proxy."""

from typing import Final

from fastapi import FastAPI

from headrace.http.gateway import (
    v2_consumers,
    v2_positions,
    v2_produce,
    v2_reading,
    v2_topics,
    v3_cluster_configs,
    v3_clusters,
    v3_configs,
    v3_groups,
    v3_partitions,
    v3_records,
    v3_topics,
)

_TAGS: Final = (
    {"name": "REST proxy v2", "description": "Topics and producing, as Confluent's proxy has them."},
    {"name": "REST proxy v2: consumers", "description": "Consumers that live from request to request."},
    {"name": "REST proxy v3", "description": "The cluster as resources with addresses, and records."},
)

_PARTS: Final = (
    v2_topics,
    v2_produce,
    v2_consumers,
    v2_reading,
    v2_positions,
    v3_clusters,
    v3_partitions,
    v3_configs,
    v3_cluster_configs,
    v3_topics,
    v3_groups,
    v3_records,
)


def install(app: FastAPI) -> None:
    """Add this part to the gateway."""
    app.include_router(v3_clusters.clusters_router)
    for part in _PARTS:
        app.include_router(part.router)
    app.openapi_tags = [*(app.openapi_tags or []), *_TAGS]
