"""A broker's refusal as an error: what will pass is told apart from what was wrong to ask."""

import pytest

from headrace.client.errors import ClientError, Unreachable, raise_for
from headrace.protocol.errors import ErrorCode


@pytest.mark.parametrize(
    "code", [ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH]
)
def test_a_broker_that_is_the_wrong_one_just_now_is_nobodys_mistake(code: ErrorCode) -> None:
    with pytest.raises(Unreachable, match=r"^g: "):
        raise_for(code, None, "g")


def test_what_was_wrong_to_ask_is_said_in_the_brokers_words() -> None:
    with pytest.raises(ClientError, match=r"^orders: no such thing$") as refused:
        raise_for(ErrorCode.INVALID_REQUEST, "no such thing", "orders")
    assert not isinstance(refused.value, Unreachable)


def test_no_error_is_no_refusal() -> None:
    raise_for(ErrorCode.NONE, "whatever")
