"""Topics: found, made, changed, emptied and deleted; what destroys asks first."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from console.reading import Reader
from headrace.client.admin.admin import Admin
from headrace.client.errors import NoSuchTopic
from headrace.client.records.one_by_one import Record, Writer


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> Admin:
    return Admin(bootstrap)


@pytest.fixture
def scratch(request: pytest.FixtureRequest, admin: Admin, bootstrap: str) -> Iterator[str]:
    """A topic of the test's own, with three records in it."""
    name = re.sub(r"\W", "", request.node.name)[:60]
    admin.create_topic(name, partitions=1)
    writer = Writer(bootstrap, name)
    for value in (b"one", b"two", b"three"):
        writer.write(Record(value=value))
    writer.flush()
    yield name
    if name in {each.name for each in admin.list_topics()}:
        admin.delete_topic(name)


def test_typing_filters_the_list_and_the_address_remembers_it(reader: Reader) -> None:
    page = reader.open("/ui/topics")
    expect(page.get_by_role("link", name="payments", exact=True)).to_be_visible()
    page.get_by_role("searchbox").fill("ord")
    expect(page.get_by_role("link", name="payments", exact=True)).to_have_count(0)
    expect(page.get_by_role("link", name="orders", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile(r"\?q=ord$"))
    page.reload()
    expect(page.get_by_role("searchbox")).to_have_value("ord")
    expect(page.get_by_role("link", name="payments", exact=True)).to_have_count(0)
    page.get_by_role("searchbox").fill("nothing like it")
    expect(page.locator("#topics")).to_contain_text("“nothing like it”")


def test_columns_sort_and_say_so(reader: Reader) -> None:
    page = reader.open("/ui/topics")
    page.get_by_role("link", name="Partitions", exact=True).click()
    header = page.get_by_role("columnheader", name="Partitions")
    expect(header).to_have_attribute("aria-sort", "ascending")
    page.get_by_role("link", name="Partitions", exact=True).click()
    expect(header).to_have_attribute("aria-sort", "descending")
    expect(page.locator("#topics tbody tr").first).to_contain_text("orders")
    page.go_back()
    expect(header).to_have_attribute("aria-sort", "ascending")


def test_internal_topics_are_shown_to_those_who_ask(reader: Reader) -> None:
    page = reader.open("/ui/topics")
    expect(page.get_by_role("link", name="__consumer_offsets")).to_have_count(0)
    page.get_by_label("internal ones, too").check()
    expect(page.get_by_role("link", name="__consumer_offsets")).to_be_visible()


@pytest.mark.parametrize("topic", ["__consumer_offsets", "_schemas"])
def test_a_topic_of_the_cluster_itself_offers_no_changes(reader: Reader, topic: str) -> None:
    page = reader.open(f"/ui/topics/{topic}")
    expect(page.locator("h1")).to_have_text(topic)
    expect(page.locator(".actions")).to_have_text("internal")


def test_a_topic_is_made_as_the_form_says(reader: Reader, admin: Admin) -> None:
    page = reader.open("/ui/topics")
    page.get_by_role("link", name="Create topic").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("made-here")
    page.get_by_role("spinbutton", name="Partitions").fill("4")
    page.get_by_label("retention.ms", exact=True).fill("86400000")
    page.get_by_text("All other settings").click()
    page.get_by_label("preallocate").select_option("true")
    page.get_by_role("button", name="Create").click()
    expect(reader.page).to_have_url(re.compile("/ui/topics/made-here$"))
    expect(reader.page.locator("#toast")).to_have_text("The topic is there")
    made = admin.describe_topic("made-here")
    assert len(made.partitions) == 4
    assert made.configs == {"retention.ms": "86400000", "preallocate": "true"}
    admin.delete_topic("made-here")


def test_a_topic_that_exists_is_refused_with_a_sentence(reader: Reader) -> None:
    page = reader.open("/ui/new-topic")
    page.get_by_role("textbox", name="Name", exact=True).fill("orders")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("#name-problem")).to_have_text("topic orders exists already")
    reader.forgive(409)


def test_every_setting_of_a_new_topic_has_a_description_a_type_and_a_default(reader: Reader) -> None:
    page = reader.open("/ui/new-topic")
    about = page.locator(".setting .about").all_text_contents()
    assert len(about) > 30
    assert [each for each in about if "Default:" not in each or len(each) < 40] == []
    expect(page.locator("[id='setting-retention.ms-about']")).to_have_text(
        "The retention time; -1: unlimited. Whole number (long). Default: 604800000 (7 d)."
    )


def test_an_invalid_setting_of_a_new_topic_is_refused_at_its_field(reader: Reader, admin: Admin) -> None:
    page = reader.open("/ui/new-topic")
    page.get_by_role("textbox", name="Name", exact=True).fill("never-made")
    page.get_by_text("All other settings").click()
    page.get_by_label("compression.type", exact=True).fill("rar")
    page.get_by_text("All other settings").click()
    page.get_by_role("button", name="Create").click()
    field = page.get_by_label("compression.type", exact=True)
    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.locator("[id='setting-compression.type-problem']")).to_contain_text("rar")
    assert "never-made" not in {each.name for each in admin.list_topics()}
    reader.forgive(400)


def test_more_replicas_than_brokers_are_refused_at_their_field(reader: Reader) -> None:
    page = reader.open("/ui/new-topic")
    page.get_by_role("textbox", name="Name", exact=True).fill("never-made")
    page.get_by_role("spinbutton", name="Replicas").fill("9")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("#replicas-problem")).to_contain_text("replication factor 9")
    reader.forgive(400)


def test_deleting_a_topic_asks_for_its_name_first(reader: Reader, admin: Admin, scratch: str) -> None:
    reader.open(f"/ui/topics/{scratch}/partitions")
    dialog = reader.dialog("Delete")
    expect(dialog).to_contain_text("3 records in 1 partition")
    delete = dialog.get_by_role("button", name="Delete the topic")
    expect(delete).to_be_disabled()
    dialog.get_by_role("textbox").fill("orders")
    expect(delete).to_be_disabled()
    dialog.get_by_role("button", name="Keep it").click()
    assert admin.describe_topic(scratch).name == scratch

    dialog = reader.dialog("Delete")
    expect(delete).to_be_disabled()
    dialog.get_by_role("textbox").fill(scratch)
    delete.click()
    expect(reader.page).to_have_url(re.compile("/ui/topics$"))
    expect(reader.page.locator("#toast")).to_have_text(f"{scratch} is deleted")
    with pytest.raises(NoSuchTopic):
        admin.describe_topic(scratch)


def test_emptying_a_topic_asks_first_and_keeps_the_topic(reader: Reader, admin: Admin, scratch: str) -> None:
    reader.open(f"/ui/topics/{scratch}")
    dialog = reader.dialog("Empty")
    expect(dialog).to_contain_text("3 records")
    dialog.get_by_label(f"Type {scratch}").fill(scratch)
    dialog.get_by_role("button", name="Delete records").click()
    expect(reader.page.locator("#toast")).to_have_text(f"{scratch} is empty")
    expect(reader.page.locator("#nothing")).to_contain_text("This topic is empty")
    (partition,) = admin.describe_topic(scratch).partitions
    assert (partition.start_offset, partition.next_offset) == (3, 3)


def test_partitions_are_added(reader: Reader, admin: Admin, scratch: str) -> None:
    reader.open(f"/ui/topics/{scratch}/partitions")
    dialog = reader.dialog("Add partitions")
    dialog.get_by_label("Partitions in all").fill("3")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(reader.page.locator("#partitions tbody tr")).to_have_count(3)
    assert len(admin.describe_topic(scratch).partitions) == 3


def test_a_setting_is_changed_and_given_back(reader: Reader, admin: Admin, scratch: str) -> None:
    page = reader.open(f"/ui/topics/{scratch}/settings?q=retention.ms")
    row = page.locator("#settings tr", has=page.get_by_label("Change retention.ms", exact=True))
    dialog = reader.dialog("Change retention.ms")
    expect(dialog.get_by_role("button", name="Give back")).to_have_count(0)
    dialog.get_by_label("Value").fill("3600000")
    dialog.get_by_role("button", name="Set", exact=True).click()
    expect(row).to_contain_text("1 h")
    expect(row).to_contain_text("topic")
    assert admin.describe_topic(scratch).configs == {"retention.ms": "3600000"}

    reader.dialog("Change retention.ms").get_by_role("button", name="Give back").click()
    expect(row).to_contain_text("7 d")
    assert admin.describe_topic(scratch).configs == {}


def test_a_setting_that_cannot_be_is_refused_with_a_sentence(reader: Reader, scratch: str) -> None:
    reader.open(f"/ui/topics/{scratch}/settings?q=retention.ms")
    dialog = reader.dialog("Change retention.ms")
    dialog.get_by_label("Value").fill("soon")
    dialog.get_by_role("button", name="Set", exact=True).click()
    expect(dialog.locator("#setting-problem")).to_contain_text("soon")
    expect(dialog.get_by_label("Value")).to_be_focused()
    reader.forgive(400)


def test_a_brokers_setting_is_changed(reader: Reader) -> None:
    page = reader.open("/ui/brokers/1?q=log.retention.ms")
    row = page.locator("#settings tbody tr").first
    before = row.locator("td .mono").first.inner_text()
    name = row.locator("th .mono").first.inner_text()
    dialog = reader.dialog(f"Change {name}")
    dialog.get_by_label("Value").fill("12345")
    dialog.get_by_role("button", name="Set", exact=True).click()
    expect(row).to_contain_text("12345")
    reader.dialog(f"Change {name}").get_by_role("button", name="Give back").click()
    expect(row).to_contain_text(before)


def test_groups_that_read_a_topic_are_listed_with_their_lag_on_it(reader: Reader) -> None:
    page = reader.open("/ui/topics/orders/groups")
    expect(page.locator("#groups tbody tr")).to_have_count(2)
    expect(page.locator("#groups")).to_contain_text("billing")
    expect(page.locator("#groups")).to_contain_text("warehouse")
