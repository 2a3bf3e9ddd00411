"""The console of a secured cluster: who has not logged in sees nothing, who has sees what brokers allow."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from console.logging_in import log_in, password_of
from console.reading import TIMEOUT_MS, Reader
from support.process import UpProcess


@pytest.fixture
def visitor(browser: Browser, secure_up: UpProcess) -> Iterator[Page]:
    """Somebody who has not logged in yet, at the topics page."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, ignore_https_errors=True)
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    page.goto(f"{secure_up.http}/ui/topics")
    yield page
    context.close()


def test_the_login_leads_back_to_the_page_and_out_again(visitor: Page, secure_up: UpProcess) -> None:
    expect(visitor).to_have_title("Log in · Headrace")
    assert "orders" not in visitor.content()

    log_in(visitor, "admin", password_of(secure_up))
    expect(visitor.get_by_role("link", name="orders")).to_be_visible()
    expect(visitor.get_by_text("admin", exact=True)).to_be_visible()
    assert not visitor.evaluate("document.cookie"), "scripts must not read the session"

    visitor.get_by_role("button", name="Log out").click()
    expect(visitor).to_have_title("Log in · Headrace")
    visitor.goto(f"{secure_up.http}/ui/topics")
    expect(visitor).to_have_title("Log in · Headrace")


def test_a_wrong_password_is_refused_in_words(visitor: Page) -> None:
    log_in(visitor, "admin", "wrong")

    expect(visitor.get_by_role("alert")).to_be_visible()
    expect(visitor.get_by_label("User")).to_have_value("admin")
    expect(visitor.get_by_label("Password")).to_have_value("")


def test_the_form_is_in_the_middle_of_the_page(visitor: Page) -> None:
    box = visitor.locator("form").bounding_box()

    assert box is not None
    assert box["width"] > 300
    assert abs(box["x"] + box["width"] / 2 - 640) < 20


@pytest.mark.parametrize("width", [390, 1440])
def test_the_login_is_not_wider_than_the_screen(browser: Browser, secure_up: UpProcess, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, ignore_https_errors=True)
    reader = Reader(context.new_page(), secure_up.http)
    page = reader.open("/ui/login")
    for _ in ("as it is opened", "after a refusal"):
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0
        assert [*reader.cut(), *reader.sticking_out()] == []
        assert reader.unreadable() == []
        log_in(page, "n" * 256, "wrong")
        expect(page.get_by_role("alert")).to_be_visible()
    context.close()
