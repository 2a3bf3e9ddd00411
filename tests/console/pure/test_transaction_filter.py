"""The filters of the list of transactions, from the address of the page."""

import pytest

from headrace.client.errors import ClientError
from headrace.client.transactions.transaction import OPEN_STATES
from headrace.gateway.console.views.transactions import TransactionFilter, read_filter


def test_open_transactions_are_listed_unless_another_state_is_asked_for() -> None:
    assert read_filter({}).states == OPEN_STATES
    assert read_filter({}).is_default
    assert read_filter({"state": "any"}).states == ()
    assert read_filter({"state": "CompleteAbort"}).states == ("CompleteAbort",)


def test_what_is_not_offered_is_ignored() -> None:
    assert read_filter({"state": "Wrong", "older": "7", "sort": "id"}) == TransactionFilter()
    assert read_filter({"older": "60000"}).older_ms == 60_000
    assert read_filter({"pattern": "x" * 600}).pattern == "x" * 500


def test_a_list_of_any_state_is_unfiltered_and_not_the_default() -> None:
    assert read_filter({"state": "any"}).is_unfiltered
    assert not read_filter({"state": "any"}).is_default
    assert not read_filter({"state": "any", "pattern": "a.*"}).is_unfiltered


def test_a_producer_id_is_a_whole_number() -> None:
    assert read_filter({"producer": ""}).producer_ids() == ()
    assert read_filter({"producer": " 4000 "}).producer_ids() == (4000,)
    for text in ("x", "-1", "1.5", "٣", "9" * 30, str(2**63)):
        with pytest.raises(ClientError, match="the producer id is"):
            read_filter({"producer": text}).producer_ids()
