import pytest

from headrace.protocol.api import ApiKey
from headrace.protocol.errors import ProtocolError
from headrace.protocol.headers import (
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
    request_header_version,
    response_header_version,
)
from headrace.protocol.schema.request_header import RequestHeader


def header(key: int, version: int, client_id: str | None = "me") -> RequestHeader:
    return RequestHeader(
        request_api_key=key, request_api_version=version, correlation_id=7, client_id=client_id
    )


@pytest.mark.parametrize("client_id", ["me", "", None, "naïve"])
@pytest.mark.parametrize("version", [8, 12])
def test_a_request_header_is_read_as_it_was_written(version: int, client_id: str | None) -> None:
    written = header(ApiKey.METADATA, version, client_id)
    frame = memoryview(encode_request_header(written) + b"body")
    read, body = decode_request_header(frame)
    assert read == written
    assert bytes(body) == b"body"


def test_the_client_id_keeps_its_old_length_in_a_flexible_header() -> None:
    encoded = encode_request_header(header(ApiKey.METADATA, 12))
    assert encoded == bytes.fromhex("0003 000c 00000007 0002 6d65 00")


def test_unknown_tagged_fields_of_a_header_are_skipped() -> None:
    frame = bytes.fromhex("0003 000c 00000007 ffff 01 63 03") + b"abcbody"
    read, body = decode_request_header(memoryview(frame))
    assert read == header(ApiKey.METADATA, 12, client_id=None)
    assert bytes(body) == b"body"


def test_an_api_versions_response_has_header_v0_in_every_version() -> None:
    assert [response_header_version(ApiKey.API_VERSIONS, version) for version in range(5)] == [0] * 5
    assert response_header_version(ApiKey.METADATA, 8) == 0
    assert response_header_version(ApiKey.METADATA, 9) == 1


def test_a_version_newer_than_we_know_has_the_flexible_request_header() -> None:
    assert request_header_version(ApiKey.API_VERSIONS, 99) == 2
    assert request_header_version(ApiKey.SASL_HANDSHAKE, 1) == 1


@pytest.mark.parametrize("version", [8, 9])
def test_a_response_header_is_read_as_it_was_written(version: int) -> None:
    frame = memoryview(encode_response_header(ApiKey.METADATA, version, 7) + b"body")
    correlation_id, body = decode_response_header(ApiKey.METADATA, version, frame)
    assert (correlation_id, bytes(body)) == (7, b"body")


@pytest.mark.parametrize(
    "frame",
    ["", "0003", "0003 000c 00000007 0005 6d65", "0003 000c 00000007 8000", "0003 000c 00000007 ffff"],
)
def test_a_header_cut_short_is_refused(frame: str) -> None:
    with pytest.raises(ProtocolError, match="request header"):
        decode_request_header(memoryview(bytes.fromhex(frame)))


def test_an_unknown_api_key_is_refused() -> None:
    with pytest.raises(ProtocolError, match="unknown API key 999"):
        decode_request_header(memoryview(bytes.fromhex("03e7 0000 00000007 ffff")))
