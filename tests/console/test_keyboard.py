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
        ("x", "Transactions"),
        ("s", "Schemas"),
        ("p", "Pipelines"),
        ("u", "Users"),
        ("l", "ACLs"),
        ("q", "Quotas"),
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
    page = reader.open("/ui/topics/orders/partitions")
    opener = page.get_by_role("button", name="Add partitions")
    opener.press("Enter")
    expect(page.get_by_role("spinbutton", name="Partitions in all")).to_be_focused()
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


def test_the_focus_stays_on_a_topic_when_others_come_before_it(reader: Reader) -> None:
    page = reader.open("/ui/topics")
    page.get_by_role("link", name="payments", exact=True).focus()
    assert page.request.post(f"{reader.url}/api/v1/topics", data={"name": "a-new-one"}).ok
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.get_by_role("link", name="a-new-one")).to_be_visible()
    expect(page.get_by_role("link", name="payments", exact=True)).to_be_focused()
    expect(page.locator("#count")).to_have_text(re.compile(r"\d+ topics"))
    assert page.request.delete(f"{reader.url}/api/v1/topics/a-new-one").ok


def test_pages_of_a_table_are_turned_without_losing_the_place(reader: Reader) -> None:
    many = {"name": "of-many-parts", "partitions": 101}
    assert reader.page.request.post(f"{reader.url}/api/v1/topics", data=many).ok
    page = reader.open("/ui/topics/of-many-parts/partitions")
    page.get_by_role("link", name="Next", exact=True).press("Enter")
    expect(page.locator(".pager")).to_contain_text("2 of 2")
    expect(page.get_by_role("link", name="Previous")).to_be_focused()  # there is no next one
    page.keyboard.press("Enter")
    expect(page.locator(".pager")).to_contain_text("1 of 2")
    expect(page.get_by_role("link", name="Next", exact=True)).to_be_focused()
    assert page.request.delete(f"{reader.url}/api/v1/topics/of-many-parts").ok


def test_versions_are_compared_with_the_arrow_keys(reader: Reader) -> None:
    page = reader.open("/ui/schemas/orders-value?version=2")
    field = page.get_by_label("Compare with")
    field.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#text-title")).to_contain_text("From version 1 to 2")
    expect(page.locator(".diff .plus").first).to_be_visible()
    expect(field).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.locator("pre.code")).to_be_visible()
    expect(page).not_to_have_url(re.compile("against"))


def test_a_topic_is_made_written_to_read_and_deleted_by_keyboard(reader: Reader) -> None:
    page = reader.open("/ui/topics")
    page.get_by_role("link", name="Create topic").press("Enter")
    expect(page.get_by_role("textbox", name="Name", exact=True)).to_be_focused()
    page.keyboard.type("by-keyboard")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("by-keyboard")
    page.get_by_role("button", name="Produce").press("Enter")
    dialog = page.get_by_role("dialog", name="Produce to by-keyboard")
    page.keyboard.type("k-1")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type("typed, not clicked")
    dialog.get_by_role("button", name="Produce").press("Enter")
    expect(dialog.get_by_role("status")).to_contain_text("at offset 0")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("not clicked")
    page.keyboard.press("Enter")
    message = page.locator("#messages summary")
    expect(message).to_have_count(1)
    message.press("Enter")
    expect(page.locator("#messages .value-full")).to_have_text("typed, not clicked")
    page.get_by_role("button", name="Delete").press("Enter")
    page.keyboard.type("by-keyboard")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/ui/topics$"))
    expect(page.locator("#toast")).to_have_text("by-keyboard is deleted")
