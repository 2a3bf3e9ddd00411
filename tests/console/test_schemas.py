"""Schemas: versions, what differs between them, whether a text may be the next one, all they can undergo."""

import json
import re

from playwright.sync_api import expect

from console.reading import Reader

NEXT = {"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "order", "type": "int"}]}


def test_subjects_are_listed_with_their_types(reader: Reader) -> None:
    page = reader.open("/ui/schemas")
    expect(page.locator("#subjects tr", has_text="orders-value")).to_contain_text("AVRO")
    expect(page.locator("#subjects tr", has_text="payments-value")).to_contain_text("JSON")
    expect(page.locator("#subjects tr", has_text="truck-positions-value")).to_contain_text("PROTOBUF")
    expect(page.locator("#level")).to_contain_text("BACKWARD")


def test_two_versions_are_compared_line_by_line(reader: Reader) -> None:
    page = reader.open("/ui/schemas/orders-value")
    expect(page.locator("pre.code")).to_contain_text('"currency"')
    page.get_by_label("Compare with").select_option("version 1")
    expect(page).to_have_url(re.compile("against=1"))
    added = page.locator(".diff .plus").filter(has_text='"name": "currency"')
    expect(added).to_have_count(1)
    expect(page.locator(".diff .skipped")).not_to_have_count(0)
    page.get_by_label("Compare with").select_option("nothing")
    expect(page.locator("pre.code")).to_contain_text('"currency"')


def test_a_text_is_checked_before_it_is_registered(reader: Reader) -> None:
    reader.open("/ui/schemas/orders-value")
    dialog = reader.dialog("New version")
    dialog.get_by_role("button", name="Check compatibility").click()
    expect(dialog.locator(".well")).to_have_text("It may be the next version.")
    dialog.get_by_role("textbox", name="Schema").fill(json.dumps(NEXT))
    dialog.get_by_role("button", name="Check compatibility").click()
    said = dialog.get_by_role("alert")
    expect(said).to_contain_text("It may not be the next version.")
    expect(said).to_contain_text("It is not BACKWARD compatible with version 2.")
    expect(said.get_by_role("listitem").first).to_contain_text("the new schema does not match the old schema")
    expect(said).not_to_contain_text("errorType")
    expect(dialog.locator(".raw pre")).not_to_be_visible()
    dialog.get_by_text("API says it").click()
    expect(dialog.locator(".raw pre")).to_contain_text("errorType:'TYPE_MISMATCH'")
    dialog.get_by_role("textbox", name="Schema").press("End")
    dialog.get_by_role("button", name="Register").click()
    expect(said).to_contain_text("It is not BACKWARD compatible with version 2.")
    expect(said).not_to_contain_text("errorType")
    dialog.get_by_role("textbox", name="Schema").fill("{")
    dialog.get_by_role("button", name="Check compatibility").click()
    expect(dialog.get_by_role("alert")).not_to_be_empty()
    for status in (409, 422):
        reader.forgive(status)


def test_a_subject_is_registered_deleted_and_deleted_for_good(reader: Reader) -> None:
    page = reader.open("/ui/schemas")
    dialog = reader.dialog("Register a schema")
    dialog.get_by_label("Subject").fill("made/here")  # a name may have a slash
    dialog.get_by_role("textbox", name="Schema").fill('"string"')
    dialog.get_by_role("button", name="Register").click()
    expect(page.locator("h1")).to_have_text("made/here")
    expect(page.locator("#toast")).to_contain_text("Registered with id")

    dialog = reader.dialog("Compatibility")
    dialog.get_by_label("Level").select_option("FULL")
    dialog.get_by_role("button", name="Set").click()
    expect(page.locator(".stats")).to_contain_text("FULL")

    dialog = reader.dialog("Delete")
    expect(dialog).to_contain_text("Records can still be decoded")
    dialog.get_by_role("textbox").fill("made/here")
    dialog.get_by_role("button", name="Delete the subject").click()
    expect(page).to_have_url(re.compile("/ui/schemas$"))
    expect(page.get_by_role("link", name="made/here")).to_have_count(0)
    page.get_by_label("deleted ones, too").check()
    page.get_by_role("link", name="made/here").click()
    dialog = reader.dialog("Delete")
    expect(dialog).to_contain_text("cannot be decoded any more")
    dialog.get_by_role("textbox").fill("made/here")
    dialog.get_by_role("button", name="Delete for good").click()
    expect(page).to_have_url(re.compile("/ui/schemas$"))
    assert page.request.get(f"{reader.url}/subjects?deleted=true").json().count("made/here") == 0
