"""Transactions: list and describe them, the producers of a partition, hanging transactions, and abort."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from headrace.client.transactions.transaction import STATES, OpenTransaction, Transaction
from headrace.gateway.current import RawRoute
from headrace.gateway.problems import MISSING, Problem, answers, header_text
from headrace.gateway.reach import Reach, ReachDep
from headrace.gateway.rest.bodies import INT32, INT64, NAME, NO_NUL, Body, Offset, PartitionId, TopicName

ID: Final = 32_767  # most bytes of a transactional id in Kafka's protocol
PATTERN: Final = 1000  # most characters of a pattern
FILTERS: Final = 100  # most producer ids or topics in a request
LIMIT: Final = 1000  # most transactions or producers in a response
NOT_OPEN, NOT_HANGING = 40407, 40904

router = APIRouter(tags=["transactions"], route_class=RawRoute, responses=answers(400, 404, 503))

TransactionalId = Annotated[
    str, Path(description="The transactional id.", min_length=1, max_length=ID, pattern=NO_NUL)
]
ProducerId = Annotated[int, Path(description="The producer id.", ge=0, le=INT64)]
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
    found = reach.transactions.list_transactions(state, producer_id, min_duration_ms, pattern)
    if found.missing:
        response.headers[MISSING] = header_text(found.missing)
    return _page("transactions", found, attrgetter("transactional_id"), after, limit)


@router.get("/transactions/{transactional_id}")
def transaction(transactional_id: TransactionalId, reach: ReachDep) -> Transaction:
    """Return the latest transaction of a transactional id: state, producer, start, timeout, partitions.

    The partitions are those in which the transaction has no marker yet.
    """
    return reach.transactions.describe([transactional_id])[0]


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

    `start_offset` is the first offset of an open transaction. `hanging` is true if no coordinator will end
    that transaction, and null if not all coordinators answer.
    """
    found = reach.transactions.active_producers(name, partition_id)
    return _page("producers", found, attrgetter("producer_id"), after, limit)


@router.get("/hanging-transactions")
def hanging_transactions(
    reach: ReachDep,
    response: Response,
    *,
    topic: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=NAME, pattern=NO_NUL)]],
        Query(description="Only partitions of these topics.", max_length=FILTERS),
    ] = [],  # noqa: B006
    broker_id: Annotated[
        int | None, Query(description="Only partitions that this broker leads.", ge=0, le=INT32)
    ] = None,
    min_duration_ms: Annotated[
        int | None,
        Query(
            description="Only those open for so long; default: transaction.max.timeout.ms and five minutes.",
            ge=0,
            le=INT64,
        ),
    ] = None,
    limit: Limit = LIMIT,
) -> dict[str, Any]:
    """Return the transactions that a partition has open and that no coordinator will end.

    Consumers with `isolation.level=read_committed` wait at their start offset until they are aborted. All
    partitions are examined; the header `headrace-missing` names those whose leader does not answer.
    """
    found = reach.transactions.find_hanging(
        topic or None, broker_id=broker_id, min_duration_ms=min_duration_ms
    )
    if found.missing:
        response.headers[MISSING] = header_text(found.missing)
    return {"transactions": found[:limit], "total": len(found)}


class AbortBody(Body):
    """The transaction to abort: the producer may have ended it since, and begun another one."""

    start_offset: Annotated[Offset, Field(description="The first offset of the transaction.")]
    force: Annotated[
        bool, Field(description="Abort it even if its coordinator would end it: records may be lost.")
    ] = False


@router.post("/topics/{name}/partitions/{partition_id}/producers/{producer_id}/abort", responses=answers(409))
def abort_transaction(
    name: TopicName, partition_id: PartitionId, producer_id: ProducerId, body: AbortBody, reach: ReachDep
) -> OpenTransaction:
    """Write an abort marker into one partition, and return the transaction that it ends there.

    Consumers with `isolation.level=read_committed` skip its records and read on. The coordinator is not
    informed. A transaction that is not hanging is refused, unless `force` is true: its producer could commit
    it later, without the records in this partition.
    """
    found = _open(reach, name, partition_id, producer_id, body.start_offset)
    if not body.force and not reach.transactions.unknown([found]):
        raise Problem(
            NOT_HANGING,
            f"{found.topic_partition}: the transaction of producer {producer_id} is not hanging: its "
            "coordinator ends it, at its timeout at the latest",
        )
    # It may have ended since, and the producer may have begun another transaction with the same epoch.
    _open(reach, name, partition_id, producer_id, body.start_offset)
    reach.transactions.abort(
        name,
        partition_id,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        coordinator_epoch=found.coordinator_epoch,
    )
    return found


def _open(reach: Reach, topic: str, partition: int, producer_id: int, start_offset: int) -> OpenTransaction:
    """Return the producer's open transaction that starts at this offset; Problem if there is none."""
    for open_transaction in reach.transactions.open_transactions(topic, partition):
        if (open_transaction.producer_id, open_transaction.start_offset) == (producer_id, start_offset):
            return open_transaction
    raise Problem(
        NOT_OPEN,
        f"{topic}-{partition} has no open transaction of producer {producer_id} at offset {start_offset}",
    )
