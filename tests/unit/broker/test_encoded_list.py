"""A response with very many items is encoded and freed in steps."""

from itertools import pairwise

from headrace.broker.requests.dispatch import FREED_TOGETHER, Encoded, encoded_list
from headrace.broker.slices import Steps
from headrace.protocol.schema.list_transactions import ListTransactionsResponse, TransactionState

VERSION = 2
MANY = 20 * FREED_TOGETHER


def listed(count: int) -> list[TransactionState]:
    return [
        TransactionState(transactional_id=f"t{number}", producer_id=number, transaction_state="Empty")
        for number in range(count)
    ]


def test_the_response_is_encoded_before_its_items_are_freed() -> None:
    items = listed(3)
    expected = ListTransactionsResponse(unknown_state_filters=(), transaction_states=listed(3))
    response = ListTransactionsResponse(unknown_state_filters=(), transaction_states=items)

    found: list[Encoded] = []

    def run() -> Steps[None]:
        found.append((yield from encoded_list(response, items, VERSION)))

    list(run())
    assert ListTransactionsResponse.decode(b"".join(found[0].body), VERSION) == expected


def test_no_step_frees_many_items() -> None:
    items = listed(MANY)
    response = ListTransactionsResponse(unknown_state_filters=(), transaction_states=items)

    lengths = [len(items) for _ in encoded_list(response, items, VERSION)]

    assert lengths[-1] == 0
    assert max(before - after for before, after in pairwise(lengths)) == FREED_TOGETHER
