"""Bytes that are no message: one ProtocolError, no crash, no hang, no memory."""

import os
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.protocol.api import ApiKey, api_schema, decode_request, request_class
from headrace.protocol.errors import ProtocolError
from headrace.protocol.headers import decode_request_header
from headrace.protocol.schema.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from headrace.protocol.schema.metadata import MetadataRequest
from oracles.messages import filled
from oracles.schemas import Case, every_case, newest_cases

EXAMPLES = 100 * int(os.environ.get("HEADRACE_EXAMPLES", "3"))
# Counts and lengths are varints in flexible versions, and integers of a fixed size in others.
HUGE = {
    True: [bytes.fromhex(number) for number in ("ffffffff0f", "ffffffff07")],
    False: [bytes.fromhex(number) for number in ("7fffffff", "7fff", "80000000")],
}
EVERY_CASE = pytest.mark.parametrize("case", every_case(), ids=str)


def sample(case: Case) -> bytes:
    return b"".join(filled(case.cls, case.version, times=1).encode(case.version))


def refused(case: Case, body: bytes) -> bool:
    """Whether `body` is refused; any other exception than ProtocolError fails the test."""
    key = case.cls.__api_key__
    try:
        if key is not None and case.cls is request_class(key):
            decode_request(key, case.version, memoryview(body))
        else:
            case.cls.decode(memoryview(body), case.version)
    except ProtocolError:
        return True
    return False


@EVERY_CASE
def test_a_message_cut_short_anywhere_is_refused(case: Case) -> None:
    body = sample(case)
    assert all(refused(case, body[:length]) for length in range(len(body)))


@EVERY_CASE
def test_bytes_after_the_end_are_refused(case: Case) -> None:
    # librdkafka sends it with a zero after its end, see headrace.protocol.scram_credentials.
    accepts_zero = case.cls is AlterUserScramCredentialsRequest
    assert refused(case, sample(case) + b"\1")
    assert refused(case, sample(case) + b"\0") is not accepts_zero


@EVERY_CASE
def test_a_flipped_bit_is_read_or_refused(case: Case) -> None:
    body = bytearray(sample(case))
    for position in range(len(body)):
        for bit in (0x01, 0x80):
            body[position] ^= bit
            refused(case, bytes(body))
            body[position] ^= bit


def with_huge_counts(body: bytes, *, flexible: bool) -> Iterator[bytes]:
    """The body with a huge number written over, or put in, at every position."""
    for position in range(len(body)):
        for huge in HUGE[flexible]:
            yield body[:position] + huge + body[position + len(huge) :]
            yield body[:position] + huge + body[position:]


@pytest.mark.parametrize("case", newest_cases(), ids=str)
def test_a_huge_count_costs_no_memory(case: Case) -> None:
    body = sample(case)[:150]
    refused(case, body)  # compiles the decoder, which is not what we measure
    tracemalloc.start()
    try:
        for hostile in with_huge_counts(body, flexible=case.flexible):
            refused(case, hostile)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1024 * 1024


def test_fifteen_bytes_that_claim_four_billion_topics_are_refused() -> None:
    body = bytes.fromhex("ffffffff0f") + bytes(10)
    with pytest.raises(ProtocolError, match=r"v12: topics has 4294967294 elements, 10 bytes are left"):
        MetadataRequest.decode(body, 12)


@settings(max_examples=EXAMPLES, deadline=None)
@given(key=st.sampled_from(list(ApiKey)), newer=st.integers(0, 20), body=st.binary(max_size=64))
@example(key=ApiKey.METADATA, newer=12, body=bytes.fromhex("ffffffff0f") + bytes(10))
def test_random_bytes_are_a_message_or_refused(key: ApiKey, newer: int, body: bytes) -> None:
    versions = api_schema(key).versions
    try:
        decode_request(key, versions[newer % len(versions)], memoryview(body))
    except ProtocolError as error:
        assert str(error)  # noqa: PT017 (a message or a refusal: both are fine)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.binary(max_size=40))
def test_random_bytes_are_a_request_header_or_refused(frame: bytes) -> None:
    try:
        header, body = decode_request_header(memoryview(frame))
    except ProtocolError:
        return
    assert header.request_api_key in set(ApiKey)
    assert len(body) < len(frame)
