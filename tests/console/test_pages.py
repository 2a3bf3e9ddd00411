"""Every page, light, dark and as wide as a phone: nothing complains or sticks out, all of it can be read."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

import pytest
from fastapi.routing import iter_route_contexts
from playwright.sync_api import Browser, expect

from console.reading import Reader
from console.seed import HOSTILE, TRANSACTIONAL_ID
from headrace.gateway.console import routes

PAGES: Final = {
    "/ui/": "Cluster",
    "/ui/brokers/1": "Broker 1",
    "/ui/brokers/1/drain": "Drain broker 1",
    "/ui/moves": "Moves",
    "/ui/new-topic": "Create a topic",
    "/ui/topics": "Topics",
    "/ui/topics?internal=1&sort=-size": "Topics",
    "/ui/topics/orders": "orders",
    "/ui/topics/orders?filter=value.total+%3E": "orders",
    "/ui/topics/orders/partitions": "orders",
    "/ui/topics/orders/settings": "orders",
    "/ui/topics/orders/groups": "orders",
    "/ui/topics/empty-one": "empty-one",
    "/ui/topics/customers": "customers",
    "/ui/groups": "Groups",
    "/ui/groups/billing": "billing",
    f"/ui/groups/{quote(HOSTILE, safe='')}": HOSTILE,
    "/ui/topics/orders/producers": "orders",
    "/ui/topics/ledger/producers?partition=0": "ledger",
    "/ui/transactions": "Transactions",
    "/ui/transactions?state=any": "Transactions",
    "/ui/transactions?pattern=(": "Transactions",
    f"/ui/transactions/{TRANSACTIONAL_ID}": TRANSACTIONAL_ID,
    "/ui/schemas": "Schemas",
    "/ui/schemas/orders-value": "orders-value",
    "/ui/schemas/orders-value?version=2&against=1": "orders-value",
    f"/ui/schemas/{quote(HOSTILE, safe='')}": HOSTILE,
    "/ui/pipelines": "Pipelines",
    "/ui/pipelines/trucks": "trucks",
    "/ui/pipelines/shop": "shop",
    "/ui/users": "Users",
    "/ui/acls": "ACLs",
    "/ui/quotas": "Quotas",
    "/ui/quotas?of=ip": "Quotas",
}

WITH_DIALOGS: Final = (
    "/ui/topics",
    "/ui/topics/orders/settings",
    "/ui/groups/billing",
    "/ui/schemas/orders-value",
)


# Colours do not depend on the width: both themes and the widest and the narrowest page are in the first two.
@pytest.fixture(
    params=[
        pytest.param(("light", 1280), id="light"),
        pytest.param(("dark", 375), id="dark phone"),
        pytest.param(("dark", 1280), id="dark", marks=pytest.mark.long),
        pytest.param(("light", 375), id="phone", marks=pytest.mark.long),
        pytest.param(("light", 768), id="tablet", marks=pytest.mark.long),
    ]
)
def looked_at(request: pytest.FixtureRequest, browser: Browser, url: str) -> Iterator[Reader]:
    theme, width = request.param
    context = browser.new_context(color_scheme=theme, viewport={"width": width, "height": 800})
    reader = Reader(context.new_page(), url)
    yield reader
    reader.check()
    context.close()


@pytest.mark.extended
def test_every_page_is_whole_in_every_theme_and_width(looked_at: Reader) -> None:
    page = looked_at.page
    for path, heading in PAGES.items():
        looked_at.open(path)
        expect(page.locator("h1")).to_have_count(1)
        expect(page.locator("h1")).to_have_text(heading)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{path} sticks out by {wide} pixels"
        assert looked_at.cut() == [], path
        assert looked_at.unreadable() == [], path
        assert looked_at.nameless() == [], path
        assert looked_at.unspoken() == [], path
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map((each) => each.id)")
        assert len(ids) == len(set(ids)), path
        looked_at.check()


REDIRECTS: Final = {"/ui", "/ui/logout", "/ui/login", "/ui/schema-ids/{schema_id}"}
"""Addresses without a page of their own here: `test_login` looks at the login."""


def test_every_page_of_the_console_is_in_the_list() -> None:
    every = {context.path_format or "" for context in iter_route_contexts(routes.router.routes)}
    patterns = {each for each in every if each.startswith("/ui") and "static" not in each}
    missing = {
        each
        for each in patterns - REDIRECTS - {"/ui/{path}"}
        if not any(re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", each), path.partition("?")[0]) for path in PAGES)
    }
    assert missing == set()


@pytest.mark.parametrize("width", [390, 1440])
def test_no_page_is_wider_than_the_screen(browser: Browser, url: str, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900})
    reader = Reader(context.new_page(), url)
    problems = []
    for path in [*PAGES, "/ui/nowhere", "/ui/topics/nope"]:
        page = reader.open(path)
        for details in page.locator("main details").all()[:3]:
            details.evaluate("(each) => { each.open = true; }")
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        problems += [f"{path} is {wide} pixels too wide"] if wide > 0 else []
        problems += [f"{path}: {each}" for each in (*reader.cut(), *reader.sticking_out())]
    assert problems == []
    reader.forgive(404)
    reader.check()
    context.close()


def test_at_the_width_of_a_phone_tables_keep_what_matters(browser: Browser, url: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800})
    reader = Reader(context.new_page(), url)
    for path, columns in (
        ("/ui/topics", ["Topic", "Records", "Health"]),
        ("/ui/groups", ["Group", "State", "Lag"]),
        ("/ui/groups/billing", ["Partition", "Committed", "Lag"]),
        ("/ui/transactions?state=any", ["Transactional id", "State", "Open for"]),
        (f"/ui/transactions/{TRANSACTIONAL_ID}", ["Partition", "Offsets waiting", "Producers"]),
        ("/ui/topics/ledger/producers?partition=0", ["Producer id", "Open transaction"]),
        ("/ui/schemas", ["Subject", "Versions", "Newest id"]),
        ("/ui/pipelines", ["Query", "State", "Rows in/s", "Lag"]),
        ("/ui/users", ["User", "Change"]),
        ("/ui/quotas", ["Of", "Quota", "Value", "Change"]),
    ):
        heads = reader.open(path).locator("table").first.locator("thead th").all()
        assert [each.inner_text().strip() for each in heads if each.is_visible()] == columns, path
    reader.check()
    context.close()


def test_dialogs_can_be_read_in_every_theme_and_width(looked_at: Reader) -> None:
    page = looked_at.page
    for path in (
        "/ui/topics",
        "/ui/topics/orders/settings",
        "/ui/groups/billing",
        "/ui/schemas/orders-value",
        "/ui/users",
        "/ui/quotas",
    ):
        looked_at.open(path)
        for name in page.evaluate("[...document.querySelectorAll('dialog')].map((each) => each.id)"):
            page.evaluate("(name) => document.getElementById(name).showModal()", name)
            dialog = page.locator(f"#{name}")
            box = dialog.bounding_box()
            assert box is not None
            assert box["x"] >= 0, (path, name)
            assert box["x"] + box["width"] <= page.viewport_size["width"], (path, name)  # type: ignore[index]
            assert looked_at.unreadable() == [], (path, name)
            page.keyboard.press("Escape")
            expect(dialog).not_to_be_visible()


def test_a_name_as_long_as_there_can_be_fits_into_every_dialog_of_a_phone(browser: Browser, url: str) -> None:
    context = browser.new_context(viewport={"width": 375, "height": 800})
    reader = Reader(context.new_page(), url)
    page, longest = reader.page, "n" * 249
    assert page.request.post(f"{url}/api/v1/topics", data={"name": longest}).ok
    reader.open(f"/ui/topics/{longest}")
    for button in ("Produce", "Add partitions", "Empty", "Delete"):
        dialog = reader.dialog(button)
        wide = dialog.evaluate("(each) => each.scrollWidth - each.clientWidth")
        assert wide <= 0, f"{button} sticks out by {wide} pixels"
        page.keyboard.press("Escape")
    assert page.request.delete(f"{url}/api/v1/topics/{longest}").ok
    reader.check()
    context.close()


def test_pages_allow_nothing_from_elsewhere_and_no_script_of_their_own(reader: Reader) -> None:
    answer = reader.page.goto(f"{reader.url}/ui/topics/customers")
    assert answer is not None
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert reader.page.locator("script:not([src], [type='application/json'])").count() == 0
    assert reader.page.locator("[style], [onclick]").count() == 0


def test_assets_are_kept_by_browsers_under_a_name_that_changes_with_them(reader: Reader) -> None:
    page = reader.open("/ui/")
    sheet = page.locator("link[rel=stylesheet]").first.get_attribute("href")
    kept = page.request.get(f"{reader.url}{sheet}")
    assert "immutable" in kept.headers["cache-control"]
    old = page.request.get(f"{reader.url}/ui/static/000000000000/base.css")
    assert old.headers["cache-control"] == "no-cache"
    assert page.request.get(f"{reader.url}/ui/static/0/..%2froutes.py").status == 404


def test_what_is_not_there_is_a_page_with_a_sentence(reader: Reader) -> None:
    for path, sentence in (
        ("/ui/topics/nope", "there is no topic nope"),
        ("/ui/groups/nope", "there is no group nope"),
        ("/ui/schemas/nope", "Subject 'nope' not found."),
        ("/ui/schemas/orders-value?version=2&against=9", "orders-value has no version 9"),
        ("/ui/pipelines/nope", "there is no pipeline nope"),
        ("/ui/nowhere/else", "there is no page nowhere/else here"),
        ("/ui/brokers/77", "there is no broker 77, only 1"),
        ("/ui/brokers/x", "broker_id: Input should be a valid integer"),
    ):
        page = reader.open(path)
        expect(page.locator(".empty p").first).to_contain_text(sentence)
    for status in (404, 422):
        reader.forgive(status)


def test_a_theme_is_kept_and_arrives_with_the_page(reader: Reader) -> None:
    page = reader.open("/ui/")
    page.get_by_role("button", name="Theme: as the system").click()
    page.get_by_role("button", name="Theme: light").click()
    expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
    reader.open("/ui/topics")
    assert page.request.get(f"{reader.url}/ui/topics").text().count('data-theme="dark"') == 1
    ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert ground == "rgb(16, 18, 20)"
