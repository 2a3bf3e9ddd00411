"""Everything can be done without a mouse."""

import re

from playwright.sync_api import expect

from console.reading import Reader


def test_g_and_a_letter_lead_to_a_page(reader: Reader) -> None:
    page = reader.open("/ui/brokers/1")
    for letter, heading in (
        ("c", "Cluster"),
        ("t", "Topics"),
        ("g", "Groups"),
        ("s", "Schemas"),
        ("p", "Pipelines"),
        ("a", "API"),
    ):
        page.keyboard.press("g")
        page.keyboard.press(letter)
        expect(page.locator("h1")).to_have_text(heading)
        expect(page.locator(".side [aria-current=page]")).to_have_text(heading)
        page.wait_for_load_state("load")


def test_a_slash_goes_to_the_search_and_letters_typed_there_are_letters(reader: Reader) -> None:
    page = reader.open("/ui/topics")
    page.keyboard.press("/")
    field = page.get_by_role("searchbox")
    expect(field).to_be_focused()
    page.keyboard.type("gc?")
    expect(field).to_have_value("gc?")
    expect(page.locator("h1")).to_have_text("Topics")
    expect(page.locator("dialog[open]")).to_have_count(0)


def test_a_question_mark_shows_the_keys_and_escape_hides_them(reader: Reader) -> None:
    page = reader.open("/ui/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keyboard")).not_to_be_visible()


def test_the_first_tab_skips_to_the_page(reader: Reader) -> None:
    page = reader.open("/ui/topics")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the page")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_tab_reaches_every_control_in_order_and_shows_where_it_is(reader: Reader) -> None:
    page = reader.open("/ui/topics/orders/settings?q=retention")
    reached: list[str] = []
    for _ in range(60):
        page.keyboard.press("Tab")
        where, outline = page.evaluate(
            "(() => { const at = document.activeElement; const style = getComputedStyle(at);"
            " return [at.getAttribute('aria-label') || at.textContent.trim() || at.name || at.tagName,"
            " style.outlineStyle !== 'none' || style.borderStyle !== 'none']; })()"
        )
        if page.evaluate("document.activeElement === document.body"):
            break
        assert outline, where
        reached.append(where)
    for wanted in ("Topics", "Produce", "Delete", "Messages", "Settings", "Change retention.ms"):
        assert wanted in reached, reached
    assert reached.index("Produce") < reached.index("Messages") < reached.index("Change retention.ms")


def test_a_dialog_keeps_the_focus_and_gives_it_back(reader: Reader) -> None:
    page = reader.open("/ui/topics")
    opener = page.get_by_role("button", name="Create topic")
    opener.press("Enter")
    expect(page.get_by_role("textbox", name="Name")).to_be_focused()
    for _ in range(12):
        page.keyboard.press("Tab")
        assert page.evaluate("!document.activeElement.closest('main, header')")
    page.keyboard.press("Escape")
    expect(opener).to_be_focused()


def test_the_focus_stays_where_it_was_when_a_list_is_renewed(reader: Reader) -> None:
    page = reader.open("/ui/topics")
    page.get_by_role("link", name="orders", exact=True).focus()
    page.evaluate("document.getElementById('topics').dataset.before = '1'")
    page.get_by_role("searchbox").evaluate(
        "(field) => { field.value = 'o'; field.form.dispatchEvent(new Event('input', { bubbles: true })); }"
    )
    expect(page).to_have_url(re.compile("q=o"))
    expect(page.get_by_role("link", name="payments", exact=True)).to_have_count(0)
    assert page.evaluate("document.activeElement.closest('#topics') !== null")
