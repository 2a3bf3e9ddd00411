"""Groups: how far they are, who is in them, moving and deleting them."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from console.reading import Reader
from console.seed import HOSTILE, commit, member
from headrace.client.admin.admin import Admin
from headrace.client.errors import NoSuchGroup
from headrace.client.groups.admin import GroupAdmin
from headrace.client.wire.brokers import Brokers


@pytest.fixture(scope="module")
def groups(bootstrap: str) -> GroupAdmin:
    return GroupAdmin(Brokers(bootstrap))


@pytest.fixture
def scratch(request: pytest.FixtureRequest, bootstrap: str, groups: GroupAdmin) -> Iterator[str]:
    """A group of the test's own, half way through the payments."""
    name = request.node.name
    commit(bootstrap, name, "payments", 0.5)
    yield name
    if name in {each.name for each in groups.list_groups()}:
        groups.delete([name])


def test_every_group_is_listed_with_its_lag(reader: Reader, groups: GroupAdmin) -> None:
    page = reader.open("/ui/groups?q=billing")
    lag = groups.describe(["billing"])[0].total_lag
    row = page.locator("#groups tbody tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("orders")
    expect(row).to_contain_text(str(lag))
    reader.open("/ui/groups?sort=-lag")
    expect(page.locator("#groups tbody tr").first).to_contain_text("fraud")


def test_a_lag_says_which_partitions_it_leaves_out(reader: Reader, bootstrap: str, scratch: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic("uncommitted", partitions=2)
    with member(bootstrap, scratch, "uncommitted", client="reading"):
        page = reader.open(f"/ui/groups/{scratch}")
        lag = page.locator("#figures div", has=page.get_by_text("Lag", exact=True))
        expect(lag).to_contain_text("without 2 partitions that have no committed offset")
        page = reader.open(f"/ui/groups?q={scratch}")
        expect(page.locator("#groups tbody td").last).to_have_text(re.compile(r"[0-9]\+$"))
    page = reader.open("/ui/groups/billing")
    expect(page.locator("#figures")).not_to_contain_text("without")


def test_a_hostile_name_is_text_and_its_page_can_be_reached(reader: Reader) -> None:
    page = reader.open("/ui/groups")
    page.get_by_role("link", name=HOSTILE).click()
    expect(page.locator("h1")).to_have_text(HOSTILE)
    expect(page.locator("#lag .key")).to_contain_text("customers")


def test_a_hostile_client_is_text(reader: Reader, bootstrap: str, scratch: str) -> None:
    with member(bootstrap, scratch, "payments", client=HOSTILE):
        page = reader.open(f"/ui/groups/{scratch}")
        expect(page.locator("#members tbody th")).to_have_text(HOSTILE)
        expect(page.locator("#partitions tbody tr").first).to_contain_text(HOSTILE)
        assert page.locator("main script, main img").count() == 0


def test_lag_is_drawn_over_time_and_read_by_keyboard(reader: Reader) -> None:
    page = reader.open("/ui/groups/fraud")
    chart = page.locator("#lag svg")
    expect(chart).to_have_attribute("aria-label", re.compile(r"orders|payments \d+"))
    expect(chart.locator(".line")).to_have_count(1)
    chart.focus()
    chart.press("ArrowLeft")
    expect(page.locator("#lag [aria-live]")).to_contain_text(re.compile(r"\d\d:\d\d:\d\d: payments \d+"))
    expect(chart.locator(".cursor")).to_have_count(1)


def test_members_are_shown_with_what_they_have(reader: Reader, bootstrap: str, scratch: str) -> None:
    with member(bootstrap, scratch, "payments"):
        page = reader.open(f"/ui/groups/{scratch}")
        expect(page.locator("#members tbody tr")).to_contain_text("shop-worker-1")
        expect(page.locator("#members tbody tr")).to_contain_text("0, 1, 2")
        expect(page.locator("#figures")).to_contain_text("Stable")
        expect(page.locator("#partitions tbody tr").first).to_contain_text("shop-worker-1")
        dialog = reader.dialog("Reset offsets")
        expect(dialog).to_contain_text("It has 1 member")
        dialog.get_by_role("button", name="Preview").click()
        expect(dialog.locator("[data-said]")).to_contain_text("stop its consumers first")
        reader.forgive(409)


def test_a_reset_shows_what_would_change_before_it_changes_anything(
    reader: Reader, groups: GroupAdmin, scratch: str
) -> None:
    def committed() -> list[int | None]:
        return [each.committed for each in groups.describe([scratch])[0].partitions]

    before = committed()
    page = reader.open(f"/ui/groups/{scratch}")
    dialog = reader.dialog("Reset offsets")
    move = dialog.get_by_role("button", name="Move the offsets")
    expect(move).to_be_disabled()
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.locator("[data-preview] tbody tr")).to_have_count(3)
    expect(dialog.locator("[data-sum]")).to_have_text("3 of 3 partitions would move.")
    expect(move).to_be_enabled()
    assert committed() == before

    dialog.get_by_role("combobox", name="To", exact=True).select_option("an offset")
    expect(move).to_be_disabled()  # what was shown is about something else
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.locator("[data-said]")).to_have_text("say which offset")
    dialog.get_by_role("textbox", name="Offset").fill("7")
    dialog.get_by_role("combobox", name="Topic").select_option("payments")
    dialog.get_by_role("textbox", name="Partition").fill("1")
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.locator("[data-preview] tbody tr")).to_have_count(1)
    move.click()
    expect(page.locator("#toast")).to_have_text("The offsets of 1 partition were moved")
    assert committed() == [before[0], 7, before[2]]


def test_deleting_a_group_asks_for_its_name_first(reader: Reader, groups: GroupAdmin, scratch: str) -> None:
    reader.open(f"/ui/groups/{scratch}")
    dialog = reader.dialog("Delete")
    expect(dialog).to_contain_text("3 partitions")
    expect(dialog.get_by_role("button", name="Delete the group")).to_be_disabled()
    dialog.get_by_role("textbox").fill(scratch)
    dialog.get_by_role("button", name="Delete the group").click()
    expect(reader.page).to_have_url(re.compile("/ui/groups$"))
    with pytest.raises(NoSuchGroup):
        groups.describe([scratch])
