"""A topic's messages: searched by offset, time, key and text, followed live, written; never markup."""

import json
import re
import time

import pytest
from confluent_kafka import Producer
from playwright.sync_api import Page, expect

from console.reading import Reader
from console.seed import HOSTILE
from headrace.client.admin.admin import Admin


def offsets(page: Page) -> list[int]:
    found = page.locator("#messages .offset").all_inner_texts()
    return [int(each.split()[-1]) for each in found]


def test_the_newest_come_first(reader: Reader) -> None:
    page = reader.open("/ui/topics/orders")
    expect(page.locator("#messages details")).to_have_count(50)
    shown = page.locator("#messages time").evaluate_all("(all) => all.map((each) => each.dateTime)")
    assert shown == sorted(shown, reverse=True)
    expect(page.locator("#told")).to_contain_text("50 messages")


def test_from_the_newest_the_search_goes_on_further_back(reader: Reader) -> None:
    page = reader.open("/ui/topics/orders?partition=2&limit=20")
    newest = offsets(page)
    assert newest == list(range(newest[0], newest[0] - 20, -1))
    page.get_by_role("link", name="Go on further back").click()
    expect(page.locator("#messages .offset").first).to_contain_text(str(newest[-1] - 1))
    assert offsets(page) == list(range(newest[-1] - 1, newest[-1] - 21, -1))


def test_messages_are_found_from_an_offset_and_the_search_goes_on(reader: Reader) -> None:
    page = reader.open("/ui/topics/orders")
    page.get_by_role("combobox", name="Show").select_option("from an offset")
    page.get_by_role("textbox", name="Offset").fill("5")
    page.get_by_role("combobox", name="Partition").select_option("2")
    page.get_by_role("combobox", name="At most").select_option("20")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("#messages details")).to_have_count(20)
    assert offsets(page) == list(range(5, 25))
    page.get_by_role("link", name="Go on from here").click()
    expect(page.locator("#messages .offset").first).to_contain_text("25")
    assert offsets(page) == list(range(25, 45))


def test_messages_are_found_from_a_time_on_the_readers_clock(reader: Reader) -> None:
    page = reader.open("/ui/topics/orders?limit=100")
    times = page.locator("#messages time").all_inner_texts()
    middle = times[len(times) // 2]
    page.get_by_role("combobox", name="Show").select_option("from a time")
    page.get_by_role("textbox", name="Time").fill(middle[:19].replace(" ", "T"))
    with page.expect_navigation():  # which waits until the page is there
        page.get_by_role("button", name="Search").click()
    found = page.locator("#messages time").all_inner_texts()
    assert len(found) in range(len(times) // 2 - 1, len(times) // 2 + 3)
    assert min(found) >= middle[:19]


def test_messages_are_found_by_key_and_by_text_in_them(reader: Reader) -> None:
    page = reader.open("/ui/topics/payments")
    page.get_by_role("textbox", name="Key is").fill("o-100007")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("#messages details")).to_have_count(1)
    expect(page.locator("#messages .key-line")).to_have_text("o-100007")
    link = page.get_by_role("link", name="as JSON").get_attribute("href")
    same = page.request.get(f"{reader.url}{link}").json()
    assert [each["key"] for each in same["messages"]] == ["o-100007"]
    page.get_by_role("textbox", name="Key is").fill("")
    page.get_by_role("searchbox").fill('"OK": FALSE')
    page.get_by_role("button", name="Search").click()
    expect(page.locator("#messages details")).to_have_count(24)
    page.get_by_role("searchbox").fill("no such thing")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("#nothing")).to_contain_text("No message matches")


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("where=offset&offset=x", "the offset is 'x': expected a whole number"),
        ("where=offset", "the offset is '': expected a whole number"),
        ("where=time&time=yesterday", "'yesterday' is not a time"),
        ("partition=99", "orders has no partition 99, only 0 to 5"),
        ("after=0:x", "expected partition:offset"),
    ],
)
def test_a_search_that_makes_no_sense_is_answered_with_a_sentence(
    reader: Reader, query: str, sentence: str
) -> None:
    page = reader.open(f"/ui/topics/orders?{query}")
    expect(page.locator("main > [role=alert], main .problem").first).to_contain_text(sentence)


def test_a_message_opens_to_all_there_is_of_it(reader: Reader) -> None:
    page = reader.open("/ui/topics/orders?text=o-100399")
    first = page.locator("#messages details").first
    first.locator("summary").press("Enter")
    value = json.loads(first.locator(".value-full").inner_text())
    assert value["order"] == "o-100399"
    expect(first.locator(".headers")).to_contain_text("shop-web")
    expect(first.locator(".value-about")).to_contain_text("json")


def test_messages_are_filtered_by_an_expression(reader: Reader) -> None:
    page = reader.open("/ui/topics/orders")
    page.get_by_role("textbox", name="Filter").fill("partition == 2 && offset < 3")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("#messages details")).to_have_count(3)
    expect(page.get_by_role("textbox", name="Filter")).to_have_value("partition == 2 && offset < 3")


def test_what_is_not_text_and_has_headers_is_marked_in_the_list(reader: Reader, bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic("marked")
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("marked", b"\xff\xfe", key=b"\x00\xff", headers=[("a", b"1"), ("b", b"2")])
    producer.produce("marked", b"text", key=b"k")
    assert producer.flush(20) == 0
    for query in ("", "?text=k", "?key=k"):  # as part of the page, and as a script adds it
        page = reader.open(f"/ui/topics/marked{query}")
        plain = page.locator("#messages details", has=page.locator(".value-line", has_text="text"))
        expect(plain).to_have_count(1)
        for mark in (".value-mark", ".key-mark", ".headers-mark"):
            expect(plain.locator(mark)).to_be_hidden()
    for query in ("?limit=20", "?filter=size(headers)%20==%202"):
        page = reader.open(f"/ui/topics/marked{query}")
        binary = page.locator("#messages details", has=page.locator(".value-line", has_text="//4="))
        expect(binary.locator(".value-mark")).to_have_text("base64")
        expect(binary.locator(".key-mark")).to_have_text("base64")
        expect(binary.locator(".headers-mark")).to_have_text("2 headers")


def test_a_search_shows_what_it_finds_and_how_far_it_is_while_it_runs(reader: Reader, bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic("slow", partitions=1)
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 200_000})
    for number in range(100_000):
        producer.produce("slow", b'{"n": %d}' % number)
    assert producer.flush(60) == 0

    page = reader.open("/ui/topics/slow?where=beginning&filter=value.n%20%3C%201")
    expect(page.locator("#messages details")).to_have_count(1)
    expect(page.locator("#told")).to_have_text(
        re.compile(r"^1 message of [0-9,]+ looked at \(.+, [0-9.]+ s\)")
    )
    progress = page.locator("#progress")
    assert 0 < progress.evaluate("(each) => each.value") <= 100_000
    expect(progress).to_be_hidden()
    assert offsets(page) == [0]


def test_a_filter_that_is_no_expression_is_answered_with_a_sentence(reader: Reader) -> None:
    page = reader.open("/ui/topics/orders?filter=value.total%20%3E")
    expect(page.locator("p.problem")).to_contain_text("the filter is not valid: at 1:14: Syntax error")


def test_a_message_links_to_a_search_that_begins_with_it(reader: Reader) -> None:
    page = reader.open("/ui/topics/orders?where=offset&offset=3&partition=0&limit=20")
    second = page.locator("#messages details").nth(1)
    second.locator("summary").click()
    second.get_by_role("link", name="From here").click()
    expect(page).to_have_url(re.compile("offset=4$"))
    assert offsets(page)[0] == 4


def test_a_search_that_begins_after_the_end_says_so(reader: Reader) -> None:
    page = reader.open("/ui/topics/orders?where=offset&offset=999999&partition=0")
    expect(page.locator("#nothing")).to_contain_text(
        "The newest message of partition 0 is before this offset"
    )


def test_a_filter_that_does_not_fit_says_why(reader: Reader) -> None:
    page = reader.open("/ui/topics/orders?filter=value.total+%2B+1+%3E+2")
    expect(page.locator("#told")).to_contain_text(
        "could not be evaluated for some messages, for example: unsupported operation: double + int"
    )


def test_a_message_links_to_the_schema_that_encoded_it(reader: Reader) -> None:
    page = reader.page
    latest = page.request.get(f"{reader.url}/subjects/orders-value/versions/latest").json()
    reader.open(f"/ui/schema-ids/{latest['id']}?subject=orders-value")
    expect(page).to_have_url(re.compile(rf"/ui/schemas/orders-value\?version={latest['version']}$"))
    reader.open("/ui/schema-ids/999999")
    expect(page.locator(".empty p").first).to_contain_text("Schema 999999 not found")
    reader.forgive(404)


def test_hostile_keys_values_and_headers_are_text(reader: Reader) -> None:
    page = reader.open("/ui/topics/customers?partition=0")
    hostile = page.locator("#messages details", has_text="<script>").first
    hostile.locator("summary").click()
    expect(hostile.locator(".value-full")).to_have_text(HOSTILE)
    expect(hostile.locator(".key-full")).to_have_text(HOSTILE)
    expect(hostile.locator(".headers th")).to_have_text(HOSTILE)
    assert page.locator("#messages script, #messages img").count() == 0


def test_a_live_tail_shows_what_is_produced_and_nothing_of_it_is_markup(
    reader: Reader, bootstrap: str
) -> None:
    page = reader.open("/ui/topics/truck-positions")
    button = page.get_by_role("button", name="Live tail")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#told")).to_have_text("waiting for messages")
    producer = Producer({"bootstrap.servers": bootstrap})
    deadline = time.monotonic() + 10
    while not page.locator("#messages details").count():  # a tail begins a moment after it is opened
        producer.produce("truck-positions", HOSTILE, HOSTILE, headers=[(HOSTILE, HOSTILE.encode())])
        producer.flush(5)
        page.wait_for_timeout(100)
        assert time.monotonic() < deadline
    first = page.locator("#messages details").first
    expect(first.locator(".value-line")).to_have_text(HOSTILE)
    first.locator("summary").click()
    expect(first.locator(".value-full")).to_have_text(HOSTILE)
    expect(first.locator(".headers td")).to_have_text(HOSTILE)
    assert page.locator("#messages script, #messages img").count() == 0
    expect(page.locator("#told")).to_contain_text(re.compile(r"Live: \d+ message"))
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    expect(page.locator("#told")).to_contain_text("The tail is stopped")


def test_a_message_is_produced_and_its_place_is_said(reader: Reader) -> None:
    page = reader.open("/ui/topics/empty-one")
    expect(page.locator("#nothing")).to_contain_text("headrace produce empty-one first second third")
    dialog = reader.dialog("Produce")
    dialog.get_by_role("textbox", name="Key").fill("k-1")
    dialog.get_by_role("textbox", name="Value").fill('{"n": 12345678901234567890}')
    dialog.get_by_role("combobox", name="Value is").select_option("JSON")
    dialog.get_by_role("textbox", name="Headers").fill("from: console")
    dialog.get_by_role("button", name="Produce").click()
    expect(dialog.locator(".well")).to_have_text("Written to partition 0 at offset 0.")
    dialog.get_by_role("textbox", name="Value").fill("{not json")
    dialog.get_by_role("button", name="Produce").click()
    expect(dialog.get_by_role("alert")).to_contain_text("the value is no JSON")
    page.keyboard.press("Escape")
    page.reload()
    first = page.locator("#messages details").first
    expect(first.locator(".key-line")).to_have_text("k-1")
    expect(first.locator(".value-line")).to_have_text('{"n": 12345678901234567890}')
    expect(first.locator(".headers")).to_contain_text("console")


def test_a_message_is_produced_by_its_schema_and_decoded_by_it(reader: Reader) -> None:
    page = reader.open("/ui/topics/orders?limit=20")
    dialog = reader.dialog("Produce")
    dialog.get_by_role("textbox", name="Key").fill("by-schema")
    dialog.get_by_role("textbox", name="Value").fill('{"order": "o-1", "total": 12.5, "currency": "PLN"}')
    encoding = dialog.get_by_role("combobox", name="Value is").locator("option:checked")
    expect(encoding).to_have_text("by orders-value, version 2")  # a topic with a schema is written by it
    dialog.get_by_role("button", name="Produce").click()
    expect(dialog.locator(".well")).to_contain_text("Written to partition")
    dialog.get_by_role("textbox", name="Value").fill('{"order": 1}')
    dialog.get_by_role("button", name="Produce").click()
    expect(dialog.get_by_role("alert")).not_to_be_empty()
    dialog.get_by_role("textbox", name="Value").fill(
        '{"order": "12345678901234567890", "n": 12345678901234567}'
    )
    dialog.get_by_role("button", name="Produce").click()
    expect(dialog.get_by_role("alert")).to_contain_text("would round 12345678901234567:")
    reader.open("/ui/topics/orders?key=by-schema")
    first = page.locator("#messages details").first
    first.locator("summary").click()
    assert json.loads(first.locator(".value-full").inner_text())["currency"] == "PLN"
    expect(first.locator(".value-about")).to_contain_text("avro, ")
    first.get_by_role("link", name=re.compile("schema [0-9]+")).click()
    expect(page.locator("h1")).to_have_text("orders-value")
    reader.open("/ui/topics/orders?text=PLN")  # what is in it is found as it is shown
    expect(page.locator("#messages details")).to_have_count(1)
    for status in (400, 422):
        reader.forgive(status)


def test_numbers_without_end_and_half_characters_are_shown_as_they_were_written(
    reader: Reader, bootstrap: str
) -> None:
    value = '{"n": 12345678901234567890, "half": "\\ud800"}'
    page = reader.open("/ui/topics/payments?text=12345678901234567890")
    expect(page.locator("#nothing")).to_be_visible()
    page.get_by_role("button", name="Live tail").click()
    producer = Producer({"bootstrap.servers": bootstrap})
    deadline = time.monotonic() + 10
    while not page.locator("#messages details").count():
        producer.produce("payments", value, "odd")
        producer.flush(5)
        page.wait_for_timeout(100)
        assert time.monotonic() < deadline
    expect(page.locator("#messages .value-line").first).to_contain_text("12345678901234567890")
    page.reload()
    expect(page.locator("#messages .value-line").first).to_contain_text("12345678901234567890")
    expect(page.locator("#messages .value-line").first).to_contain_text("ud800")
