"""Every message in every version, byte for byte as kio writes it.

HEADRACE_EXAMPLES=200 asks for more random messages of each than the default few.
"""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from headrace.protocol.api import decode_request, encode_response, request_class
from headrace.protocol.structs import all_defaults
from oracles.kio_messages import kio_bytes
from oracles.messages import filled, messages
from oracles.schemas import Case, every_case, hand_coded_cases

EXAMPLES = int(os.environ.get("HEADRACE_EXAMPLES", "3"))
EVERY_CASE = pytest.mark.parametrize("case", every_case(), ids=str)


@EVERY_CASE
def test_random_messages_are_written_and_read_as_kio_does(case: Case) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(messages(case.cls, case.version))
    def compare(message: Any) -> None:
        assert_same_as_kio(case, message)

    compare()


@pytest.mark.parametrize("case", hand_coded_cases(), ids=str)
def test_many_more_messages_of_the_apis_coded_by_hand_are_as_kio_has_them(case: Case) -> None:
    @settings(max_examples=20 * EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(messages(case.cls, case.version, plain=True))
    def compare(message: Any) -> None:
        assert_same_as_kio(case, message)

    compare()


@EVERY_CASE
def test_a_message_of_defaults_is_written_and_read_as_kio_does(case: Case) -> None:
    assert_same_as_kio(case, all_defaults(case.cls))


@EVERY_CASE
def test_a_message_with_everything_filled_in_is_written_and_read_as_kio_does(case: Case) -> None:
    assert_same_as_kio(case, filled(case.cls, case.version))


def assert_same_as_kio(case: Case, message: Any) -> None:
    expected = kio_bytes(case, message)
    body = memoryview(bytearray(expected))
    assert b"".join(message.encode(case.version)) == expected
    assert case.cls.decode(body, case.version) == message
    key = case.cls.__api_key__
    if key is not None and case.cls is request_class(key):  # by hand, where there is a codec by hand
        assert decode_request(key, case.version, body) == message
    elif key is not None:
        assert b"".join(encode_response(key, case.version, message)) == expected
