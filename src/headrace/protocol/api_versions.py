"""ApiVersions (key 18), v0-v5: the first request of every connection.

It has to work between any two versions, so it has two special rules: a request in an unknown version is
answered in v0, with UNSUPPORTED_VERSION and the supported versions, and the response always has header v0
(see `headers`).
"""

import struct
from typing import Final

from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.api_versions import ApiVersionsRequest, ApiVersionsResponse

VERSIONS: Final = range(6)
BROKER_SOFTWARE: Final = "headrace-broker"
"""The name of the client software of brokers, who are also told the APIs that only brokers use."""
_FIRST_FLEXIBLE: Final = 3
_UNSUPPORTED_VERSION: Final = struct.pack(">h", ErrorCode.UNSUPPORTED_VERSION)
_UNKNOWN_CLIENT: Final = ApiVersionsRequest()


def answer_version(version: int) -> int:
    """Return the version of the response: the client's, or 0 if that is unknown."""
    return version if version in VERSIONS else 0


def decode_request(body: memoryview, version: int) -> ApiVersionsRequest:
    """Decode the request; one of an unknown version, which is refused, decodes without its fields."""
    if version not in VERSIONS or (version < _FIRST_FLEXIBLE and not body):
        return _UNKNOWN_CLIENT
    return ApiVersionsRequest.decode(body, version)


def decode_response(body: memoryview, version: int) -> ApiVersionsResponse:
    """Decode the response; one that refuses the version is in v0, and lists the supported versions."""
    refused = bytes(body[:2]) == _UNSUPPORTED_VERSION
    return ApiVersionsResponse.decode(body, 0 if refused else version)
