"""Every message in every version that kio has, byte for byte as kio writes it.

HEADRACE_EXAMPLES=200 asks for more random messages of each than the default few.
"""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from headrace.protocol.compiled.structs import all_defaults
from oracles.kio_messages import kio_bytes, kio_has
from oracles.messages import assert_written_and_read_as, filled, messages
from oracles.schemas import Case, every_case, hand_coded_cases

EXAMPLES = int(os.environ.get("HEADRACE_EXAMPLES", "3"))
EVERY_CASE = pytest.mark.parametrize("case", [case for case in every_case() if kio_has(case)], ids=str)


@EVERY_CASE
def test_random_messages_are_written_and_read_as_kio_does(case: Case) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(messages(case.cls, case.version))
    def compare(message: Any) -> None:
        assert_same_as_kio(case, message)

    compare()


@pytest.mark.parametrize("case", [case for case in hand_coded_cases() if kio_has(case)], ids=str)
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
    assert_written_and_read_as(case, message, kio_bytes(case, message))
