import pytest

from headrace.broker.errors import NotLeader
from headrace.broker.translate import Failure, error_code
from headrace.coordination.session import NotConnected
from headrace.protocol.errors import ErrorCode
from headrace.storage.errors import LogOffline, StorageError


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (NotLeader("x"), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (LogOffline("x"), ErrorCode.KAFKA_STORAGE_ERROR),
        (StorageError("x"), ErrorCode.KAFKA_STORAGE_ERROR),
        (NotConnected("x"), ErrorCode.REQUEST_TIMED_OUT),
    ],
)
def test_every_failure_has_a_number_that_clients_know(failure: Failure, code: ErrorCode) -> None:
    assert error_code(failure) is code
    assert code.retriable
