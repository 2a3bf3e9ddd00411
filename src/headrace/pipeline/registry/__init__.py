"""Decoding by a schema registry: Avro, JSON Schema and Protobuf in its wire format become typed columns."""

from headrace.pipeline.registry.declaring import Registry

__all__ = ["Registry"]
