"""The filters of the list of transactions, from the address of the page."""

import pytest

from headrace.client.errors import ClientError
from headrace.client.transactions.transaction import OPEN_STATES
from headrace.gateway.console.transaction_filter import TransactionFilter, read


def test_open_transactions_are_listed_unless_another_state_is_asked_for() -> None:
    assert read({}).states == OPEN_STATES
    assert read({}).is_default
    assert read({"state": "any"}).states == ()
    assert read({"state": "CompleteAbort"}).states == ("CompleteAbort",)


def test_what_is_not_offered_is_ignored() -> None:
    assert read({"state": "Wrong", "older": "7", "sort": "id"}) == TransactionFilter()
    assert read({"older": "60000"}).older_ms == 60_000
    assert read({"pattern": "x" * 600}).pattern == "x" * 500


def test_a_list_of_any_state_is_unfiltered_and_not_the_default() -> None:
    assert read({"state": "any"}).is_unfiltered
    assert not read({"state": "any"}).is_default
    assert not read({"state": "any", "pattern": "a.*"}).is_unfiltered


def test_a_producer_id_is_a_whole_number() -> None:
    assert read({"producer": ""}).producer_ids() == ()
    assert read({"producer": " 4000 "}).producer_ids() == (4000,)
    for text in ("x", "-1", "1.5", "٣", "9" * 30, str(2**63)):
        with pytest.raises(ClientError, match="the producer id is"):
            read({"producer": text}).producer_ids()
