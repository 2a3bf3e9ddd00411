"""Every message that kafka-python has, byte for byte as its encoder writes it."""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from headrace.protocol.structs import all_defaults
from oracles.kafka_python_messages import has_schema, kafka_python_bytes
from oracles.messages import filled, messages
from oracles.schemas import Case, every_case

EXAMPLES = int(os.environ.get("HEADRACE_EXAMPLES", "3"))
CASES = [case for case in every_case() if has_schema(case)]
SHARED_CASES = pytest.mark.parametrize("case", CASES, ids=str)


@SHARED_CASES
def test_random_messages_are_written_and_read_as_kafka_python_does(case: Case) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(messages(case.cls, case.version))
    def compare(message: Any) -> None:
        assert_same_as_kafka_python(case, message)

    compare()


@SHARED_CASES
def test_messages_of_defaults_and_full_ones_are_written_and_read_as_kafka_python_does(case: Case) -> None:
    assert_same_as_kafka_python(case, all_defaults(case.cls))
    assert_same_as_kafka_python(case, filled(case.cls, case.version))


def assert_same_as_kafka_python(case: Case, message: Any) -> None:
    expected = kafka_python_bytes(case, message)
    assert b"".join(message.encode(case.version)) == expected
    assert case.cls.decode(expected, case.version) == message
