import pytest

from headrace.protocol import api_versions
from headrace.protocol.errors import ErrorCode, ProtocolError
from headrace.protocol.schema.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

KEYS = [
    ApiVersion(api_key=0, min_version=3, max_version=13),
    ApiVersion(api_key=18, min_version=0, max_version=5),
]


def test_a_client_newer_than_us_is_answered_in_v0() -> None:
    assert api_versions.decode_request(memoryview(b"whatever v9 may be"), 9) == ApiVersionsRequest()
    assert api_versions.answer_version(9) == 0
    assert api_versions.answer_version(3) == 3


def test_a_client_says_who_it_is_from_v3_on() -> None:
    body = memoryview(b"\x08librdka\x042.1\x00")
    expected = ApiVersionsRequest(client_software_name="librdka", client_software_version="2.1")
    assert api_versions.decode_request(body, 3) == expected
    assert api_versions.decode_request(memoryview(b""), 0) == ApiVersionsRequest()


def test_bytes_after_a_request_that_has_none_are_refused() -> None:
    with pytest.raises(ProtocolError, match="ApiVersionsRequest v0: 1 bytes follow"):
        api_versions.decode_request(memoryview(b"x"), 0)


@pytest.mark.parametrize(("error", "encoded_in"), [(ErrorCode.NONE, 3), (ErrorCode.UNSUPPORTED_VERSION, 0)])
def test_a_response_that_refuses_the_version_is_read_as_v0(error: ErrorCode, encoded_in: int) -> None:
    response = ApiVersionsResponse(api_keys=KEYS, error_code=error)
    body = b"".join(response.encode(encoded_in))
    assert api_versions.decode_response(memoryview(body), 3) == response
