"""AlterUserScramCredentials as librdkafka sends it: with one byte after its end, which Kafka ignores."""

from headrace.protocol.errors import ProtocolError
from headrace.protocol.fields import Buffer
from headrace.protocol.schema.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)


def decode_request(body: memoryview, version: int) -> AlterUserScramCredentialsRequest:
    """Decode a request; a second empty section of tagged fields at its end is accepted."""
    try:
        return AlterUserScramCredentialsRequest.decode(body, version)
    except ProtocolError:
        if bytes(body[-1:]) != b"\0":
            raise
        return AlterUserScramCredentialsRequest.decode(body[:-1], version)


def encode_response(response: AlterUserScramCredentialsResponse, version: int) -> list[Buffer]:
    return response.encode(version)
