import logging

import pytest

from headrace.broker.transactions import MAX_WARNED, Transactions
from headrace.protocol.errors import ErrorCode


def test_a_transactional_id_is_refused_with_a_fatal_error_and_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    transactions = Transactions()

    refusals = [transactions.refusal("orders", "app", "10.0.0.7") for _ in range(3)]

    assert {refusal.code for refusal in refusals} == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    assert not refusals[0].retriable
    assert "remove transactional.id='orders'" in str(refusals[0])
    (warning,) = caplog.records
    assert warning.levelno == logging.WARNING
    assert "client 'app' at 10.0.0.7 with transactional.id='orders'" in warning.getMessage()


def test_the_log_mentions_a_bounded_number_of_ids(caplog: pytest.LogCaptureFixture) -> None:
    transactions = Transactions()

    for number in range(MAX_WARNED + 10):
        transactions.refusal(f"{number}-" + 30_000 * "x", None, "10.0.0.7")

    assert len(caplog.records) == MAX_WARNED
    assert "further refusals are not logged" in caplog.records[-1].getMessage()
    assert max(len(record.getMessage()) for record in caplog.records) < 300
