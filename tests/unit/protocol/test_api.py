import subprocess
import sys

import pytest

from headrace.protocol.api import (
    ApiKey,
    api_schema,
    decode_request,
    encode_response,
    request_class,
    response_class,
)
from headrace.protocol.errors import ProtocolError
from headrace.protocol.schema.heartbeat import HeartbeatRequest, HeartbeatResponse


def test_every_key_has_a_request_and_a_response_of_its_versions() -> None:
    for key in ApiKey:
        versions = api_schema(key).versions
        for cls in (request_class(key), response_class(key)):
            assert cls.__api_key__ == key
            assert cls.__codec__.versions == versions


def test_the_keys_are_those_of_kafka_without_its_old_zookeeper_controller() -> None:
    assert [int(key) for key in ApiKey] == [0, 1, 2, 3, *range(8, 95)]


def test_a_request_is_read_and_a_response_written_by_number() -> None:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    body = memoryview(b"".join(request.encode(4)))
    assert decode_request(ApiKey.HEARTBEAT, 4, body) == request
    assert encode_response(ApiKey.HEARTBEAT, 4, HeartbeatResponse(error_code=27)) == [b"\0\0\0\0\0\x1b\0"]


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(ProtocolError, match="unknown API key 7"):
        decode_request(7, 0, memoryview(b""))


def test_a_broker_imports_no_oracle_and_no_schema_that_it_has_not_been_asked_for() -> None:
    program = """
import sys
import headrace.protocol.api, headrace.protocol.frame, headrace.protocol.headers
schemas = {name.rpartition(".")[2] for name in sys.modules if name.startswith("headrace.protocol.schema.")}
heavy = {"kio", "kafka", "dataclasses", "inspect", "asyncio", "typing_extensions"} & set(sys.modules)
print(sorted(schemas), sorted(heavy))
"""
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = ["api_versions", "error_codes", "fetch", "index", "metadata", "produce", "request_header"]
    assert shown.stdout.strip() == f"{loaded} []"
