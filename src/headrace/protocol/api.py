"""The table of all APIs: the class of each request, and its fastest codec.

A schema module is imported when its API is first used, so a broker loads only what it needs.
"""

from collections.abc import Callable, Generator
from functools import cache
from importlib import import_module
from typing import Any, Final

from headrace.protocol import api_versions, fetch, produce
from headrace.protocol.between_brokers import broker_metrics, seed_replica, step_down, update_metadata
from headrace.protocol.errors import ProtocolError
from headrace.protocol.fields import Buffer
from headrace.protocol.message import Message
from headrace.protocol.primitives import MAX_ELEMENTS, MAX_REQUEST_ELEMENTS
from headrace.protocol.schema.index import APIS, ApiKey, ApiSchema
from headrace.protocol.schema.metadata import MetadataRequest

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

_OF_BROKERS: Final[dict[int, tuple[Any, str]]] = {
    update_metadata.UPDATE_METADATA: (update_metadata, "UpdateMetadata"),
    broker_metrics.BROKER_METRICS: (broker_metrics, "BrokerMetrics"),
    step_down.STEP_DOWN: (step_down, "StepDown"),
    seed_replica.SEED_REPLICA: (seed_replica, "SeedReplica"),
}
"""Our own messages, and one that Kafka 4 no longer has."""


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
    by_hand = _DECODED_BY_HAND.get(key)
    return by_hand(body, version) if by_hand else request_class(key).decode(body, version)


def decode_response(key: int, version: int, body: memoryview) -> Any:
    """Decode the response to a request of `version`; raise ProtocolError if it is malformed."""
    if key == ApiKey.API_VERSIONS:
        return api_versions.decode_response(body, version)
    return response_class(key).decode(body, version)


def encode_response(key: int, version: int, response: Any) -> list[Buffer]:
    """Return the buffers of a response's body, with records uncopied; raise EncodeError if it is invalid."""
    if key == ApiKey.PRODUCE:
        return produce.encode_response(response, version)
    if key == ApiKey.FETCH:
        return fetch.encode_response(response, version)
    encoded: list[Buffer] = response.encode(version)
    return encoded


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


def _decode_metadata(body: memoryview, version: int) -> MetadataRequest:
    """Decode a Metadata request; bytes may follow a request for all topics, as in Kafka.

    librdkafka 2.16 asks for all topics, in flexible versions, with a null array of four bytes where one is
    meant: `00 000000 01 00 00`. Read to the letter that is the request followed by three bytes.
    """
    codec = MetadataRequest.__codec__
    try:
        return MetadataRequest.decode(body, version)
    except ProtocolError:
        request: MetadataRequest = codec.decode(body, version, trailing=True)
        if request.topics is None and version in codec.flexible:
            return request
        raise


def _decode_padded(body: memoryview, version: int) -> Message:
    """Decode a request that librdkafka sends with one zero byte after its end, which Kafka ignores."""
    decode = request_class(ApiKey.ALTER_USER_SCRAM_CREDENTIALS).decode
    try:
        return decode(body, version)
    except ProtocolError:
        if bytes(body[-1:]) != b"\0":
            raise
        return decode(body[:-1], version)


_DECODED_BY_HAND: Final[dict[int, Callable[[memoryview, int], Message]]] = {
    ApiKey.PRODUCE: produce.decode_request,
    ApiKey.FETCH: fetch.decode_request,
    ApiKey.METADATA: _decode_metadata,
    ApiKey.API_VERSIONS: api_versions.decode_request,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _decode_padded,
}


def _class(key: int, kind: str) -> type[Message]:
    if key in _OF_BROKERS:
        module, name = _OF_BROKERS[key]
        of_brokers: type[Message] = getattr(module, name + kind)
        return of_brokers
    api = api_schema(key)
    found: type[Message] = getattr(import_module(f"headrace.protocol.schema.{api.module}"), api.name + kind)
    return found
