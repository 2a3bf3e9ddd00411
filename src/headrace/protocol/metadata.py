"""Metadata (key 3): the compiled codec, and a workaround for one client.

librdkafka 2.16 asks for all topics, in flexible versions, with a null array of four bytes where one is meant:
`00 000000 01 00 00`. Read to the letter that is the request followed by three bytes; Kafka ignores them, and
so must we. Bytes after any other request are an error.
"""

from headrace.protocol.errors import ProtocolError
from headrace.protocol.fields import Buffer
from headrace.protocol.schema.metadata import MetadataRequest, MetadataResponse


def decode_request(body: memoryview, version: int) -> MetadataRequest:
    """Decode the request in `body`; bytes may follow a request for all topics."""
    codec = MetadataRequest.__codec__
    try:
        return MetadataRequest.decode(body, version)
    except ProtocolError:
        request: MetadataRequest = codec.decode(body, version, trailing=True)
        if request.topics is None and version in codec.flexible:
            return request
        raise


def encode_response(response: MetadataResponse, version: int) -> list[Buffer]:
    return response.encode(version)
