import pytest

from headrace.protocol.api import ApiKey, decode_request
from headrace.protocol.errors import ProtocolError


def test_librdkafkas_request_for_all_topics_is_understood() -> None:
    request = decode_request(ApiKey.METADATA, 13, memoryview(bytes.fromhex("00000000010000")))

    assert request.topics is None


@pytest.mark.parametrize("body", ["0100000000", "020000000000000000000000000000000000026100000000ff"])
def test_bytes_after_a_request_for_some_topics_are_refused(body: str) -> None:
    with pytest.raises(ProtocolError):
        decode_request(ApiKey.METADATA, 13, memoryview(bytes.fromhex(body)))
