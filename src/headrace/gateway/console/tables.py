"""Tables that the parameters of the address filter, sort and split into pages, without a script.

table_of(request, topics, columns={"name": …, "size": …}, text=lambda each: each.name).rows
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlencode

from fastapi import Request

from headrace.gateway.current import root_of

PAGE: Final = 50  # rows
LONGEST: Final = 500  # most characters of a filter

Row = TypeVar("Row")
Column = Callable[[Row], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Generic[Row]):
    """One page of a table, with links to the other pages and sort orders."""

    rows: Sequence[Row]
    total: int  # before the filter
    found: int  # after it
    page: int
    pages: int
    query: str
    sort: str
    prefix: str
    path: str
    parameters: Mapping[str, str]

    def with_rows(self, rows: Sequence[Row]) -> "Table[Row]":
        """Return the same page with other rows, which have more columns filled."""
        return replace(self, rows=rows)

    def link(self, **changes: object) -> str:
        """Return the address of this page with some parameters changed; None removes one."""
        wanted = dict(self.parameters)
        for name, value in changes.items():
            key = self.prefix + name
            wanted.pop(key, None)
            if value is not None:
                wanted[key] = str(value)
        return f"{self.path}?{urlencode(wanted)}" if wanted else self.path

    def sort_link(self, column: str) -> str:
        """Return the address of this page sorted by a column, or in reverse if it already is."""
        return self.link(sort=f"-{column}" if self.sort == column else column, page=None)

    def order(self, column: str) -> str:
        return {column: "ascending", f"-{column}": "descending"}.get(self.sort, "none")


def table_of(
    request: Request,
    rows: Sequence[Row],
    columns: Mapping[str, Column[Row]],
    *,
    text: Callable[[Row], str],
    sort: str,
    prefix: str = "",
    size: int = PAGE,
) -> Table[Row]:
    """Return the page of `rows` that the request's parameters select; invalid ones are ignored."""
    parameters = dict(request.query_params)
    query = parameters.get(f"{prefix}q", "").strip()[:LONGEST]
    by = parameters.get(f"{prefix}sort", sort)
    column = columns.get(by.removeprefix("-"))
    if column is None:
        by, column = sort, columns[sort.removeprefix("-")]
    # A row has all words of the query; case does not matter. Rows without a value in the column come last.
    words = query.lower().split()
    matching = [row for row in rows if all(word in text(row).lower() for word in words)]
    known = [row for row in matching if column(row) is not None]
    unknown = [row for row in matching if column(row) is None]
    ordered = [*sorted(known, key=column, reverse=by.startswith("-")), *unknown]
    pages = max(1, -(-len(ordered) // size))
    number = parameters.get(f"{prefix}page", "")
    is_number = number.isascii() and number.isdigit() and len(number) < 10
    page = min(pages, max(1, int(number) if is_number else 1))
    return Table(
        rows=ordered[(page - 1) * size : page * size],
        total=len(rows),
        found=len(ordered),
        page=page,
        pages=pages,
        query=query,
        sort=by,
        prefix=prefix,
        path=path_of(request),
        parameters=parameters,
    )


def by_attributes(*names: str, **others: str) -> dict[str, Callable[[Any], Any]]:
    """Return columns of a row's attributes: `names` are named like the attribute, `others` are not."""
    return {
        name: attrgetter(attribute)
        for name, attribute in (dict(zip(names, names, strict=True)) | others).items()
    }


def path_of(request: Request) -> str:
    """Return the undecoded path: names in it may contain anything."""
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    return root_of(request.scope) + raw.partition(b"?")[0].decode("latin-1")
