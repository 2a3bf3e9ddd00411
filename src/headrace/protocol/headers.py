"""Message headers: the request header v1 and v2, the response header v0 and v1.

Which version goes with which message follows from the API's first flexible version, with one
exception: an ApiVersions response always has v0, because its reader does not know yet what we speak.
"""

from struct import Struct
from struct import error as struct_error
from typing import Any, Final

from headrace.protocol.between_brokers.broker_metrics import BROKER_METRICS
from headrace.protocol.between_brokers.seed_replica import SEED_REPLICA
from headrace.protocol.between_brokers.step_down import STEP_DOWN
from headrace.protocol.between_brokers.update_metadata import UPDATE_METADATA
from headrace.protocol.errors import ProtocolError
from headrace.protocol.fields import NEWEST
from headrace.protocol.primitives import bad_length, skip_tags
from headrace.protocol.schema.index import APIS, ApiKey
from headrace.protocol.schema.request_header import RequestHeader

_new: Any = object.__new__
_FIXED: Final = Struct(">hhih")  # key, version, correlation id, length of the client id
_RESPONSE_V0: Final = Struct(">i")
_RESPONSE_V1: Final = Struct(">ix")  # no tagged fields
_FIRST_FLEXIBLE: Final = {
    **{int(key): api.flexible.start if api.flexible else NEWEST for key, api in APIS.items()},
    UPDATE_METADATA: 0,
    BROKER_METRICS: 0,
    STEP_DOWN: 0,
    SEED_REPLICA: 0,
}


def request_header_version(api_key: int, api_version: int) -> int:
    """Return 1, or 2 for a flexible request. An unknown newer version counts as flexible, if any is."""
    return 2 if api_version >= _first_flexible(api_key) else 1


def response_header_version(api_key: int, api_version: int) -> int:
    """Return 0, or 1 for a flexible response other than ApiVersions."""
    return int(api_version >= _first_flexible(api_key) and api_key != ApiKey.API_VERSIONS)


def decode_request_header(frame: memoryview) -> tuple[RequestHeader, memoryview]:
    """Return the header of a request and its body, a view of `frame`."""
    try:
        key, version, correlation_id, length = _FIXED.unpack_from(frame)
        client_id, end = None, _FIXED.size
        if length != -1:
            start, end = end, end + length
            if not start <= end <= len(frame):
                bad_length("client_id", length, len(frame) - start)
            client_id = frame[start:end].tobytes().decode()
        if version >= _first_flexible(key):
            count = frame[end]
            end, _ = skip_tags(frame, end + 1, len(frame), count)
    except (struct_error, IndexError, ValueError) as error:
        raise ProtocolError(f"request header: {error}") from error
    header = _new(RequestHeader)  # without __init__, whose keywords take as long as the rest
    header.request_api_key = key
    header.request_api_version = version
    header.correlation_id = correlation_id
    header.client_id = client_id
    return header, frame[end:]


def encode_request_header(header: RequestHeader) -> bytes:
    version = request_header_version(header.request_api_key, header.request_api_version)
    return b"".join(header.encode(version))


def encode_response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    layout = _RESPONSE_V1 if response_header_version(api_key, api_version) else _RESPONSE_V0
    return layout.pack(correlation_id)


def decode_response_header(api_key: int, api_version: int, frame: memoryview) -> tuple[int, memoryview]:
    """Return the correlation id of a response and its body, a view of `frame`."""
    try:
        (correlation_id,) = _RESPONSE_V0.unpack_from(frame)
        end = 4
        if response_header_version(api_key, api_version):
            end, _ = skip_tags(frame, 5, len(frame), frame[4])
    except (struct_error, IndexError, ValueError) as error:
        raise ProtocolError(f"response header: {error}") from error
    return correlation_id, frame[end:]


def _first_flexible(api_key: int) -> int:
    try:
        return _FIRST_FLEXIBLE[api_key]
    except KeyError:
        raise ProtocolError(f"unknown API key {api_key}") from None
