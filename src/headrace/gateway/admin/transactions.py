"""Transactions: list and describe them, and the producers of a partition."""

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from headrace.client.transactions.transaction import (
    STATES,
    PartitionProducer,
    Transaction,
    TransactionSummary,
)
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
    str,
    Path(
        description="The transactional id.",
        min_length=1,
        max_length=ID,
        pattern=NO_NUL,
        examples=["billing-1"],
    ),
]
Limit = Annotated[int, Query(description="Most of them to return.", ge=1, le=LIMIT)]
MinDurationMs = Annotated[int | None, Query(description="Only those open for so long.", ge=0, le=INT64)]


# -- coordinators ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionsAnswer:
    """Transactions by transactional id. `total` counts all that match; `next` is null on the last page."""

    transactions: tuple[TransactionSummary, ...]
    total: int
    next: str | None


@router.get("/transactions", summary="List transactions")
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
            examples=["billing-.*"],
        ),
    ] = None,
    after: Annotated[
        str | None, Query(description="Continue here: `next` of a response.", max_length=ID)
    ] = None,
    limit: Limit = 100,
) -> TransactionsAnswer:
    """Return every transactional id that matches all filters, with the state of its latest transaction.

    Transactions whose coordinator does not answer are left out; the header `headrace-missing` then names the
    broker and the reason.
    """
    found = reach.transactions.list_transactions(
        states=state, producer_ids=producer_id, min_duration_ms=min_duration_ms, pattern=pattern
    )
    if found.missing:
        response.headers[MISSING] = header_text(found.missing)
    left = found if after is None else [each for each in found if each.transactional_id > after]
    page = tuple(left[:limit])
    return TransactionsAnswer(
        transactions=page, total=len(found), next=page[-1].transactional_id if len(left) > limit else None
    )


@router.get("/transactions/{transactional_id}", summary="Get a transaction")
def transaction(transactional_id: TransactionalId, reach: ReachDep) -> Transaction:
    """Return the latest transaction of a transactional id: state, producer, start, timeout, partitions.

    The partitions are those in which the transaction has no marker yet.
    """
    return reach.transactions.describe_transactions([transactional_id])[0]


# -- partitions ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducersAnswer:
    """Producers of a partition by producer id. `total` counts all; `next` is null on the last page."""

    producers: tuple[PartitionProducer, ...]
    total: int
    next: int | None


@router.get("/topics/{name}/partitions/{partition_id}/producers", summary="List producers of a partition")
def producers(
    name: TopicName,
    partition_id: PartitionId,
    reach: ReachDep,
    *,
    after: Annotated[
        int | None, Query(description="Continue here: `next` of a response.", ge=0, le=INT64)
    ] = None,
    limit: Limit = 100,
) -> ProducersAnswer:
    """Return the idempotent and transactional producers whose state the leader of the partition keeps.

    `start_offset` is the first offset of an open transaction.
    """
    found = reach.transactions.describe_producers(name, partition_id)
    left = found if after is None else [producer for producer in found if producer.producer_id > after]
    page = tuple(left[:limit])
    return ProducersAnswer(
        producers=page, total=len(found), next=page[-1].producer_id if len(left) > limit else None
    )
