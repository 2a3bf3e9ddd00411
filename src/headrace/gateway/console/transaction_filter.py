"""The filters of the list of transactions, as the address of the page has them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headrace.client.errors import ClientError
from headrace.client.transactions.transaction import OPEN_STATES, STATES

ANY: Final = "any"
DURATIONS_MS: Final = (10_000, 60_000, 300_000, 900_000, 3_600_000, 86_400_000)
LONGEST: Final = 500  # most characters of a pattern
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


def read(fields: Mapping[str, str]) -> TransactionFilter:
    """Return the filters of an address; a state or a duration that is not offered is ignored."""
    state, older = fields.get("state", ""), fields.get("older", "")
    return TransactionFilter(
        state=state if state in (*STATES, ANY) else "",
        producer=fields.get("producer", "").strip(),
        older_ms=int(older) if older in map(str, DURATIONS_MS) else None,
        pattern=fields.get("pattern", "").strip()[:LONGEST],
    )
