"""KIP-482: a tagged field that we do not know is passed over, wherever it stands."""

import pytest

from headrace.protocol.api import decode_request, request_class
from oracles.messages import filled
from oracles.naive_encoder import NaiveEncoder
from oracles.schemas import Case, every_case

FLEXIBLE_CASES = [case for case in every_case() if case.flexible]


@pytest.mark.parametrize("case", FLEXIBLE_CASES, ids=str)
def test_unknown_tagged_fields_are_skipped_in_every_struct(case: Case) -> None:
    message = filled(case.cls, case.version, times=1)
    body = NaiveEncoder(case.version).struct(case.cls, message)
    assert case.cls.decode(body, case.version) == message
    key = case.cls.__api_key__
    if key is not None and case.cls is request_class(key):
        assert decode_request(key, case.version, memoryview(body)) == message
