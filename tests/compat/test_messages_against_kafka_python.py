"""Every message, byte for byte as kafka-python's encoder writes it from Kafka's definitions."""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from headrace.protocol.compiled.structs import all_defaults
from oracles.kafka_python_messages import has_encoder, kafka_python_bytes
from oracles.messages import assert_written_and_read_as, filled, messages
from oracles.schemas import Case, every_case

EXAMPLES = int(os.environ.get("HEADRACE_EXAMPLES", "3"))
CASES = [case for case in every_case() if has_encoder(case)]
EVERY_CASE = pytest.mark.parametrize("case", CASES, ids=str)
pytestmark = pytest.mark.usefixtures("kafka_clients")


@EVERY_CASE
def test_random_messages_are_written_and_read_as_kafka_python_does(case: Case) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(messages(case.cls, case.version))
    def compare(message: Any) -> None:
        assert_same_as_kafka_python(case, message)

    compare()


@EVERY_CASE
def test_messages_of_defaults_and_full_ones_are_written_and_read_as_kafka_python_does(case: Case) -> None:
    assert_same_as_kafka_python(case, all_defaults(case.cls))
    assert_same_as_kafka_python(case, filled(case.cls, case.version))


def assert_same_as_kafka_python(case: Case, message: Any) -> None:
    assert_written_and_read_as(case, message, kafka_python_bytes(case, message))
