"""The table of all APIs: the class of each request, and its fastest codec.

A schema module is imported when its API is first used, so a broker loads only what it needs.
"""

from collections.abc import Callable, Generator
from functools import cache, partial
from importlib import import_module
from typing import Any, Final

from headrace.protocol import api_versions, fetch, metadata, produce
from headrace.protocol.between_brokers import broker_metrics, seed_replica, step_down, update_metadata
from headrace.protocol.errors import ProtocolError
from headrace.protocol.fields import Buffer
from headrace.protocol.message import Message
from headrace.protocol.primitives import MAX_ELEMENTS, MAX_REQUEST_ELEMENTS
from headrace.protocol.schema.index import APIS, ApiKey, ApiSchema

__all__ = [
    "ApiKey",
    "ApiSchema",
    "api_schema",
    "decode_request",
    "decode_request_in_slices",
    "decode_response",
    "encode_response",
    "request_class",
    "response_class",
]

_BY_HAND: Final[dict[int, Any]] = {
    ApiKey.PRODUCE: produce,
    ApiKey.FETCH: fetch,
    ApiKey.METADATA: metadata,
    ApiKey.API_VERSIONS: api_versions,
}

_OF_BROKERS: Final[dict[int, tuple[Any, str]]] = {
    update_metadata.UPDATE_METADATA: (update_metadata, "UpdateMetadata"),
    broker_metrics.BROKER_METRICS: (broker_metrics, "BrokerMetrics"),
    step_down.STEP_DOWN: (step_down, "StepDown"),
    seed_replica.SEED_REPLICA: (seed_replica, "SeedReplica"),
}
"""Our own messages, and one that Kafka 4 no longer has."""


_PADDED: Final = {ApiKey.ALTER_USER_SCRAM_CREDENTIALS}
"""Requests that librdkafka sends with one zero byte after their end, which Kafka ignores."""


def api_schema(key: int) -> ApiSchema:
    """Return the description of an API key; raise ProtocolError if the key is unknown."""
    try:
        return APIS[key]
    except KeyError:
        raise ProtocolError(f"unknown API key {key}") from None


@cache  # bounded: only known keys return
def request_class(key: int) -> type[Message]:
    return _class(key, "Request")


@cache
def response_class(key: int) -> type[Message]:
    return _class(key, "Response")


def decode_request(key: int, version: int, body: memoryview) -> Any:
    """Decode the request in `body`; record data are views of it. Raise ProtocolError if it is malformed."""
    return _decoder(key)(body, version)


def decode_response(key: int, version: int, body: memoryview) -> Any:
    """Decode the response to a request of `version`; raise ProtocolError if it is malformed."""
    if key == ApiKey.API_VERSIONS:
        return api_versions.decode_response(body, version)
    return response_class(key).decode(body, version)


def encode_response(key: int, version: int, response: Any) -> list[Buffer]:
    """Return the buffers of a response's body, with records uncopied; raise EncodeError if it is invalid."""
    return _encoder(key)(response, version)


def decode_request_in_slices(
    key: int, version: int, body: memoryview, structs: list[Any] | None = None
) -> Generator[None, None, Any]:
    """Decode a large request in steps; raise ProtocolError if it has too many elements.

    Elements that are structs are appended to `structs`, so that the request can be freed in steps.
    """
    if key == ApiKey.PRODUCE:
        return produce.decode_request_in_slices(body, version, MAX_REQUEST_ELEMENTS, structs)
    max_elements = MAX_ELEMENTS if key in _OF_BROKERS else MAX_REQUEST_ELEMENTS
    return request_class(key).decode_in_slices(body, version, max_elements, structs)


@cache
def _decoder(key: int) -> Callable[[memoryview, int], Message]:
    by_hand = _BY_HAND.get(key)
    decoder: Callable[[memoryview, int], Message] = (
        by_hand.decode_request if by_hand else request_class(key).decode
    )
    return partial(_decode_padded, decoder) if key in _PADDED else decoder


def _decode_padded(decoder: Callable[[memoryview, int], Message], body: memoryview, version: int) -> Message:
    """Decode a request that may have one more empty section of tagged fields at its end."""
    try:
        return decoder(body, version)
    except ProtocolError:
        if bytes(body[-1:]) != b"\0":
            raise
        return decoder(body[:-1], version)


@cache
def _encoder(key: int) -> Callable[[Any, int], list[Buffer]]:
    by_hand = _BY_HAND.get(key)
    encoder: Callable[[Any, int], list[Buffer]] = (
        by_hand.encode_response if by_hand else response_class(key).encode
    )
    return encoder


def _class(key: int, kind: str) -> type[Message]:
    if key in _OF_BROKERS:
        module, name = _OF_BROKERS[key]
        of_brokers: type[Message] = getattr(module, name + kind)
        return of_brokers
    api = api_schema(key)
    found: type[Message] = getattr(import_module(f"headrace.protocol.schema.{api.module}"), api.name + kind)
    return found
