"""Random histories of a database table, as Debezium reports them, and what the table must be in the end."""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

EVENTS: Final = "id long, name string, amount int, op string, lsn long"


@dataclass(frozen=True, slots=True)
class Change:
    """A row of the source after a change, or the row that was deleted."""

    id: int
    name: str | None
    amount: int | None
    op: str  # c, u, d
    lsn: int


def history_of_source(chance: random.Random, *, keys: int, changes: int) -> list[Change]:
    """Return the changes of a table in their order: rows are inserted, updated, deleted, inserted again."""
    alive: set[int] = set()
    found = []
    for lsn in range(1, changes + 1):
        key = chance.randrange(keys)
        if key in alive and chance.random() < 0.3:
            alive.discard(key)
            found.append(Change(key, None, None, "d", lsn))
            continue
        op = "u" if key in alive else "c"
        alive.add(key)
        found.append(Change(key, chance.choice(["ä", "", None, "x" * 40]), chance.randrange(100), op, lsn))
    return found


def disordered(chance: random.Random, changes: Sequence[Change], *, distance: int) -> list[Change]:
    """Return the changes up to `distance` places too late or too early, some of them several times."""
    repeated = [each for each in changes for _ in range(chance.choice([1, 1, 1, 2, 3]))]
    places = [(place + chance.uniform(0, distance), each) for place, each in enumerate(repeated)]
    return [each for _, each in sorted(places, key=lambda pair: pair[0])]


def cut(chance: random.Random, changes: Sequence[Change], batches: int) -> Iterator[list[Change]]:
    """Yield the changes in batches of different sizes, some of which are empty."""
    places = sorted(chance.randrange(len(changes) + 1) for _ in range(batches - 1))
    for begin, end in zip([0, *places], [*places, len(changes)], strict=True):
        yield list(changes[begin:end])


def final_rows(changes: Sequence[Change]) -> list[dict[str, Any]]:
    """Return the rows of the source after all changes, in the order of their keys."""
    rows: dict[int, Change] = {}
    for each in changes:
        rows[each.id] = each
    return [
        {"id": each.id, "name": each.name, "amount": each.amount, "lsn": each.lsn}
        for _, each in sorted(rows.items())
        if each.op != "d"
    ]


def all_versions(changes: Sequence[Change]) -> list[dict[str, Any]]:
    """Return every version of every row, with the first and the next sequence."""
    found = []
    for place, each in enumerate(changes):
        if each.op == "d":
            continue
        end = next((later.lsn for later in changes[place + 1 :] if later.id == each.id), None)
        row = {"id": each.id, "name": each.name, "amount": each.amount}
        found.append({**row, "__START_AT": each.lsn, "__END_AT": end})
    return sorted(found, key=lambda row: (row["id"], row["__START_AT"]))


def row_of(change: Change) -> dict[str, Any]:
    return {"id": change.id, "name": change.name, "amount": change.amount}


def envelope(change: Change) -> dict[str, Any]:
    """Return the value of Debezium's PostgreSQL connector; a deleted row has its key only."""
    source = {
        "version": "3.3.1.Final",
        "connector": "postgresql",
        "name": "shop",
        "ts_ms": 1_700_000_000_000 + change.lsn,
        "snapshot": "false",
        "db": "shop",
        "sequence": f'["{change.lsn - 1}","{change.lsn}"]',
        "schema": "public",
        "table": "customers",
        "txId": 7,
        "lsn": change.lsn,
        "xmin": None,
    }
    before = row_of(change) if change.op == "d" else None
    after = None if change.op == "d" else row_of(change)
    return {
        "before": before,
        "after": after,
        "source": source,
        "op": change.op,
        "ts_ms": 1_700_000_001_000 + change.lsn,
        "transaction": None,
    }


def json_value(change: Change, *, wrapped: bool) -> bytes:
    """Return the event as Connect's JSON converter writes it; `wrapped` is with `schemas.enable`."""
    found = envelope(change)
    schema = {"type": "struct", "optional": False, "name": "shop.public.customers.Envelope", "fields": []}
    return json.dumps({"schema": schema, "payload": found} if wrapped else found).encode()
