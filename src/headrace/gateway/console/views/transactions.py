"""Transactions: the list, and one transaction with its partitions.

Brokers apply the filters of the list, which shows open transactions unless it is asked for others: a cluster
may have 100,000 transactional ids, and few of them have an open transaction. Epoch, duration and timeout take
another request, and are read for the rows of a page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from headrace.client.errors import ClientError, Unreachable
from headrace.client.transactions.admin import Summaries
from headrace.client.transactions.transaction import OPEN_STATES, STATES, Transaction, TransactionSummary
from headrace.gateway.admin.transactions import ID
from headrace.gateway.console.pages import PageRoute, page
from headrace.gateway.console.tables import by_attributes, table_of
from headrace.gateway.current import clients_of
from headrace.gateway.reach import Reach, ReachDep

ANY: Final = "any"
DURATIONS_MS: Final = (10_000, 60_000, 300_000, 900_000, 3_600_000, 86_400_000)
LONGEST_PATTERN: Final = 500  # most characters of a pattern
_MAX_INT: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionFilter:
    """The filters that brokers apply. The producer id is kept as it was typed, so that the page shows it."""

    state: str = ""  # a state, ANY, or nothing for the states of open transactions
    producer: str = ""
    older_ms: int | None = None
    pattern: str = ""

    @property
    def states(self) -> tuple[str, ...]:
        """The states to ask brokers for; none for all."""
        if self.state == ANY:
            return ()
        return (self.state,) if self.state else OPEN_STATES

    def producer_ids(self) -> tuple[int, ...]:
        """Return the producer ids to ask brokers for; ClientError if there is no number in the field."""
        if not self.producer:
            return ()
        if not (self.producer.isascii() and self.producer.isdigit() and len(self.producer) < 20):
            raise ClientError(f"the producer id is {self.producer[:50]!r}: expected a whole number")
        if int(self.producer) > _MAX_INT:
            raise ClientError(f"the producer id is {self.producer}: expected at most {_MAX_INT}")
        return (int(self.producer),)

    @property
    def is_unfiltered(self) -> bool:
        """Whether no filter but that of the state is set."""
        return self == TransactionFilter(state=self.state)

    @property
    def is_default(self) -> bool:
        return self == TransactionFilter()


def read_filter(fields: Mapping[str, str]) -> TransactionFilter:
    """Return the filters of an address; a state or a duration that is not offered is ignored."""
    state, older = fields.get("state", ""), fields.get("older", "")
    return TransactionFilter(
        state=state if state in (*STATES, ANY) else "",
        producer=fields.get("producer", "").strip(),
        older_ms=int(older) if older in map(str, DURATIONS_MS) else None,
        pattern=fields.get("pattern", "").strip()[:LONGEST_PATTERN],
    )


FEW: Final = 200  # transactions, up to which all are described for the list, so that it can sort by duration
MISSING_SHOWN: Final = 3  # reasons why transactions are missing

router = APIRouter(route_class=PageRoute, include_in_schema=False)


class TransactionRow(NamedTuple):
    """A row of the list; the whole transaction is None until it is described, or if it cannot be."""

    listed: TransactionSummary
    whole: Transaction | None = None


_SUMMARY_COLUMNS = by_attributes(
    state="listed.state",
    coordinator="listed.coordinator",
    id="listed.transactional_id",
    producer="listed.producer_id",
)
_COLUMNS = _SUMMARY_COLUMNS | {
    "epoch": lambda row: row.whole and row.whole.producer_epoch,
    "duration": lambda row: row.whole and row.whole.duration_ms,
    "timeout": lambda row: row.whole and row.whole.timeout_ms,
}


@router.get("/ui/transactions")
def transactions(request: Request, reach: ReachDep) -> Response:
    """Few transactions are all described; of many, those on the page."""
    form, problem, found = read_filter(request.query_params), "", Summaries()
    try:
        found = clients_of(request).console.transactions.get(
            request,
            lambda: reach.transactions.list_transactions(
                states=form.states,
                producer_ids=form.producer_ids(),
                min_duration_ms=form.older_ms,
                pattern=form.pattern or None,
            ),
            key=form,
        )
    except Unreachable:
        raise
    except ClientError as error:
        problem = str(error)
    few = len(found) <= FEW
    rows = list(map(TransactionRow, found))
    table = table_of(
        request,
        _described(reach, rows) if few else rows,
        _COLUMNS if few else _SUMMARY_COLUMNS,
        text=lambda row: f"{row.listed.transactional_id} {row.listed.producer_id}",
        sort="id",
    )
    if not few:
        table = table.with_rows(_described(reach, table.rows))
    return page(
        request,
        "transactions.html",
        title="Transactions",
        table=table,
        few=few,
        form=form,
        problem=problem,
        missing=found.missing[:MISSING_SHOWN],
        states=STATES,
        durations=DURATIONS_MS,
    )


def _described(reach: Reach, rows: Sequence[TransactionRow]) -> list[TransactionRow]:
    known = reach.transactions.describe_known(row.listed.transactional_id for row in rows)
    return [TransactionRow(row.listed, known.get(row.listed.transactional_id)) for row in rows]


@router.get("/ui/transactions/{transactional_id:path}")
def transaction(
    request: Request, transactional_id: Annotated[str, Path(min_length=1, max_length=ID)], reach: ReachDep
) -> Response:
    found = reach.transactions.describe_transactions([transactional_id])[0]
    table = table_of(
        request, list(found.partitions), {"place": lambda row: row}, text=lambda row: row.topic, sort="place"
    )
    return page(
        request,
        "transaction.html",
        title=transactional_id,
        transaction=found,
        table=table,
        ends=reach.transactions.ends(table.rows),
    )
