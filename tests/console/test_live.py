"""What moves by itself: throughput, health, pipelines; and pages in a browser without scripts."""

import re
import time
from dataclasses import replace

from playwright.sync_api import Browser, expect

from console.reading import Reader
from console.seed import HOSTILE
from headrace.client.records.one_by_one import Record, Writer
from headrace.gateway.console.formats import UNKNOWN
from headrace.pipeline.progress import TOPIC, Progress


def test_throughput_is_drawn_as_it_happens(reader: Reader) -> None:
    page = reader.open("/ui/")
    expect(page.locator("#bytes .line").first).to_be_attached()
    expect(page.locator("#bytes .key")).to_have_count(2)
    expect(page.locator("#bytes svg")).to_have_attribute(
        "aria-label", re.compile(r"Bytes per second, now: in \S+ \w+")
    )
    expect(page.locator("#records .key")).to_contain_text("broker 1")
    assert reader.shifted() == 0
    page.locator("#bytes svg").hover()
    expect(page.locator("#bytes .cursor")).to_have_count(1)
    expect(page.locator("#bytes .when")).to_have_text(re.compile(r"\d\d:\d\d:\d\d"))


def test_the_cluster_says_that_all_is_well_and_who_is_the_controller(reader: Reader) -> None:
    page = reader.open("/ui/")
    expect(page.locator("#health")).to_contain_text("All is well")
    expect(page.locator("#brokers tbody tr")).to_contain_text("controller")
    expect(page.locator("#brokers tbody tr")).to_contain_text("up")


def test_a_page_renews_itself_when_something_changes(reader: Reader) -> None:
    page = reader.open("/ui/topics")
    answer = page.request.post(f"{reader.url}/api/v1/topics", data={"name": "came-by-itself"})
    assert answer.ok
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # as if one had looked away
    expect(page.get_by_role("link", name="came-by-itself")).to_be_visible()
    assert page.request.delete(f"{reader.url}/api/v1/topics/came-by-itself").ok


def test_pipelines_show_rates_lag_and_the_last_error_as_text(reader: Reader) -> None:
    page = reader.open("/ui/pipelines")
    trucks = page.locator("section", has=page.get_by_role("link", name="trucks"))
    expect(trucks.locator("tbody tr")).to_have_count(2)
    shop = page.locator("section", has=page.get_by_role("link", name="shop"))
    expect(shop.locator(".problem")).to_contain_text(
        f"column `totall` cannot be resolved; did you mean `total`? {HOSTILE}"
    )
    page.get_by_role("link", name="trucks").click()
    expect(page.locator("#rates-1 .line")).to_have_count(2)
    expect(page.locator("#lag-1 .line")).to_have_count(1)
    assert reader.shifted() == 0
    expect(page.locator("#lags-1 tbody tr")).to_have_count(4)
    expect(page.locator("#lags-1 tbody tr").first).to_contain_text("truck-positions-0")


def test_a_pipeline_shows_its_steps_restarts_and_broken_expectations(reader: Reader) -> None:
    page = reader.open("/ui/pipelines/trucks")
    steps = page.locator("#graph tbody tr")
    expect(steps).to_have_count(4)
    expect(steps.filter(has_text="topic truck-alerts")).to_have_text(re.compile("^alerts *sink *fast"))
    expect(steps.filter(has_text=f"Delta {HOSTILE}")).to_have_text(re.compile("^archive *sink *positions"))
    about = page.locator("#about-1")
    expect(about).to_contain_text("Restarted the last time because: truck-alerts-0 has no leader")
    expect(about.locator("tbody tr")).to_have_text(re.compile("positions: a known truck.*30"))


def test_a_pipeline_that_has_gone_quiet_says_when_its_last_figures_were_true(reader: Reader) -> None:
    page = reader.open("/ui/pipelines/shop")  # it failed minutes ago
    expect(page.locator("#rates-1 .when")).to_have_text(re.compile(r"last at (\d+ \w{3} )?\d\d:\d\d:\d\d"))
    chart = page.locator("#rates-1 svg")
    expect(chart).to_have_attribute("aria-label", re.compile("Rows per second, last at"))


def test_the_rates_of_a_pipeline_that_does_not_report_are_unknown(reader: Reader, bootstrap: str) -> None:
    started = Progress(
        pipeline="quiet",
        query="quiet.archive",
        event="started",
        at_ms=int(time.time() * 1000) - 300_000,
        graph=({"name": "archive", "kind": "sink", "inputs": [], "about": "Delta archive"},),
    )
    batch = replace(started, event="batch", graph=(), batch=1, rows=9, rows_per_s=90.0, lag=7)
    writer = Writer(bootstrap, TOPIC)
    for progress in (started, batch):
        writer.write(Record(value=progress.encode()))
    writer.flush()
    page = reader.open("/ui/pipelines/quiet")
    expect(page.locator("#about-1")).to_contain_text("silent")
    expect(page.locator("#about-1 div", has_text="Rows in").locator("dd")).to_contain_text(UNKNOWN)
    expect(page.locator("#about-1 div", has_text="Rows out").locator("dd")).to_contain_text(UNKNOWN)
    expect(page.locator("#graph")).to_contain_text("silent")
    expect(page.locator("#graph")).not_to_contain_text("rows/s")


def test_figures_are_renewed_and_what_was_closed_stays_closed(reader: Reader, bootstrap: str) -> None:
    page = reader.open("/ui/pipelines/trucks")
    details = page.locator("#lags-1 details")
    details.locator("summary").click()
    expect(details).not_to_have_attribute("open", "")
    news = Progress(
        pipeline="trucks",
        query="trucks.alerts",
        event="batch",
        at_ms=int(time.time() * 1000),
        batch=61,
        rows=5,
        rows_per_s=43210.0,
        lag=7,
        lags={f"truck-positions-{index}": 987_654 for index in range(4)},
    )
    writer = Writer(bootstrap, TOPIC)
    writer.write(Record(value=news.encode()))
    writer.flush()
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator("#about-1")).to_contain_text("43,210/s")
    expect(details.locator("tbody tr").first).to_contain_text("987,654")
    expect(details).not_to_have_attribute("open", "")


def test_lists_and_details_can_be_read_without_scripts(browser: Browser, url: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{url}/ui/topics")
    page.get_by_role("searchbox").fill("pay")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("#topics tbody tr")).to_have_count(1)
    expect(page.get_by_role("button", name="Create topic")).not_to_be_visible()
    page.get_by_role("link", name="payments").click()
    page.get_by_role("textbox", name="Key is").fill("o-100007")
    page.get_by_role("button", name="Search").click()
    page.locator("#messages summary").click()
    expect(page.locator("#messages .value-full")).to_contain_text("o-100007")
    page.goto(f"{url}/ui/topics/payments?key=o-100007")  # a link of somebody whose browser runs scripts
    page.get_by_role("link", name="Show what the search finds").click()
    expect(page.locator("#messages .key-line")).to_have_text("o-100007")
    page.get_by_role("link", name="Partitions").click()
    expect(page.locator("#partitions tbody tr")).to_have_count(3)
    page.goto(f"{url}/ui/schemas/orders-value?version=2&against=1")
    expect(page.locator(".diff .plus").first).to_be_visible()
    context.close()
