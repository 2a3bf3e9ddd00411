"""Tables by their address: filtered, sorted, a page at a time; nonsense in the address is passed over."""

from fastapi import Request

from headrace.gateway.console.tables import Table, table_of

ROWS = [(f"topic-{index:03}", index % 7 if index % 10 else None) for index in range(120)]


def asked(query: str, path: bytes = b"/ui/topics") -> Request:
    return Request(
        {
            "type": "http",
            "method": "GET",
            "path": path.decode(),
            "raw_path": path,
            "query_string": query.encode(),
            "headers": [],
        }
    )


def table(query: str) -> Table[tuple[str, int | None]]:
    columns = {"name": lambda row: row[0], "size": lambda row: row[1]}
    return table_of(asked(query), ROWS, columns, text=lambda row: row[0], sort="name")


def test_a_page_has_fifty_rows_and_says_how_many_there_are() -> None:
    found = table("page=3")
    assert [row[0] for row in found.rows] == [f"topic-{index:03}" for index in range(100, 120)]
    assert (found.page, found.pages, found.total, found.found) == (3, 3, 120, 120)


def test_all_words_of_a_query_have_to_be_there_in_any_case() -> None:
    assert [row[0] for row in table("q=TOPIC+11").rows] == [
        f"topic-{index:03}" for index in (11, *range(110, 120))
    ]
    assert table("q=nothing").rows == []


def test_what_is_unknown_comes_last_whichever_way_round() -> None:
    for query in ("sort=size", "sort=-size"):
        rows = table(f"{query}&page=3").rows
        assert [row[1] for row in rows][-12:] == [None] * 12
    assert table("sort=-size").rows[0][1] == 6


def test_nonsense_in_the_address_is_passed_over() -> None:
    for query in ("sort=nonsense", "page=0", "page=-3", "page=x", "page=99999999999999", "sort=-"):
        found = table(query)
        assert found.rows, query
        assert 1 <= found.page <= found.pages


def test_links_keep_what_else_was_asked_for() -> None:
    found = table("q=1&internal=1&sort=size&page=2")
    assert found.link(page=1) == "/ui/topics?q=1&internal=1&sort=size&page=1"
    assert found.sort_link("size") == "/ui/topics?q=1&internal=1&sort=-size"
    assert found.sort_link("name") == "/ui/topics?q=1&internal=1&sort=name"
    assert (found.order("size"), found.order("name")) == ("ascending", "none")


def test_a_path_is_kept_as_it_was_sent() -> None:
    columns = {"name": lambda row: row}
    found = table_of(asked("", b"/ui/groups/a%2Fb%3F"), ["x"], columns, text=str, sort="name")
    assert found.link(page=2) == "/ui/groups/a%2Fb%3F?page=2"
