"""Transactions: list and describe them, and the producers of a partition."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from headrace.client.transactions.transaction import STATES, Transaction
from headrace.gateway.current import RawRoute
from headrace.gateway.problems import MISSING, answers, header_text
from headrace.gateway.reach import ReachDep
from headrace.gateway.rest.bodies import INT64, NO_NUL, PartitionId, TopicName

ID: Final = 32_767  # most bytes of a transactional id in Kafka's protocol
PATTERN: Final = 1000  # most characters of a pattern
FILTERS: Final = 100  # most producer ids or topics in a request
LIMIT: Final = 1000  # most transactions or producers in a response

router = APIRouter(tags=["transactions"], route_class=RawRoute, responses=answers(400, 404, 503))

TransactionalId = Annotated[
    str, Path(description="The transactional id.", min_length=1, max_length=ID, pattern=NO_NUL)
]
Limit = Annotated[int, Query(description="Most of them to return.", ge=1, le=LIMIT)]
MinDurationMs = Annotated[int | None, Query(description="Only those open for so long.", ge=0, le=INT64)]


@router.get("/transactions")
def transactions(
    reach: ReachDep,
    response: Response,
    *,
    state: Annotated[
        list[str], Query(description=f"Only in these states: {', '.join(STATES)}.", max_length=len(STATES))
    ] = [],  # noqa: B006
    producer_id: Annotated[
        list[Annotated[int, Field(ge=0, le=INT64)]],
        Query(description="Only of these producer ids.", max_length=FILTERS),
    ] = [],  # noqa: B006
    min_duration_ms: MinDurationMs = None,
    pattern: Annotated[
        str | None,
        Query(
            description="Only transactional ids that match this regular expression (RE2) as a whole.",
            min_length=1,
            max_length=PATTERN,
        ),
    ] = None,
    after: Annotated[
        str | None, Query(description="Continue here: `next` of a response.", max_length=ID)
    ] = None,
    limit: Limit = 100,
) -> dict[str, Any]:
    """Return every transactional id that matches all filters, with the state of its latest transaction.

    Transactions whose coordinator does not answer are left out; the header `headrace-missing` then names the
    broker and the reason.
    """
    found = reach.transactions.list_transactions(
        states=state, producer_ids=producer_id, min_duration_ms=min_duration_ms, pattern=pattern
    )
    if found.missing:
        response.headers[MISSING] = header_text(found.missing)
    return _page("transactions", found, attrgetter("transactional_id"), after, limit)


@router.get("/transactions/{transactional_id}")
def transaction(transactional_id: TransactionalId, reach: ReachDep) -> Transaction:
    """Return the latest transaction of a transactional id: state, producer, start, timeout, partitions.

    The partitions are those in which the transaction has no marker yet.
    """
    return reach.transactions.describe_transactions([transactional_id])[0]


def _page(
    name: str, found: Sequence[Any], key: Callable[[Any], Any], after: object, limit: int
) -> dict[str, Any]:
    """Return one page of a list by its key; `total` counts all, and `next` is null on the last page."""
    left = found if after is None else [each for each in found if key(each) > after]
    return {
        name: left[:limit],
        "total": len(found),
        "next": key(left[limit - 1]) if len(left) > limit else None,
    }


@router.get("/topics/{name}/partitions/{partition_id}/producers")
def producers(
    name: TopicName,
    partition_id: PartitionId,
    reach: ReachDep,
    *,
    after: Annotated[
        int | None, Query(description="Continue here: `next` of a response.", ge=0, le=INT64)
    ] = None,
    limit: Limit = 100,
) -> dict[str, Any]:
    """Return the idempotent and transactional producers whose state the leader of the partition keeps.

    `start_offset` is the first offset of an open transaction.
    """
    found = reach.transactions.describe_producers(name, partition_id)
    return _page("producers", found, attrgetter("producer_id"), after, limit)
