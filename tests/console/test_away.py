"""A cluster that cannot be reached: pages say so, and recover by themselves."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, expect

from console.reading import Reader
from headrace.gateway.serving import serve_in_thread
from support.process import UpProcess


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[UpProcess, str]]:
    with UpProcess(tmp_path_factory.mktemp("fragile")) as up, serve_in_thread(up.bootstrap) as served:
        yield up, served.url


def test_a_page_says_that_the_cluster_is_away_and_goes_on_when_it_is_back(
    context: BrowserContext, fragile: tuple[UpProcess, str]
) -> None:
    up, url = fragile
    looking, coming = Reader(context.new_page(), url), Reader(context.new_page(), url)
    looking.open("/ui/topics")
    expect(looking.page.locator(".empty")).to_contain_text("headrace topic create orders --partitions 3")
    up.kill()
    answer = coming.page.goto(f"{url}/ui/topics")
    assert answer is not None
    assert answer.status == 503
    expect(coming.page.locator("h1")).to_have_text("The cluster does not answer")
    expect(coming.page.locator(".empty")).to_contain_text("no broker answers at")
    expect(looking.page.locator("#away")).to_contain_text("The cluster does not answer")
    expect(looking.page.locator("h1")).to_have_text("Topics")  # what was there can still be read
    up.start()
    expect(coming.page.locator("h1")).to_have_text("Topics")
    expect(looking.page.locator("#away")).to_be_hidden()
    for reader in (looking, coming):
        reader.forgive(503)
        reader.check()


def test_an_empty_cluster_says_what_to_do_next_with_the_exact_command(
    context: BrowserContext, fragile: tuple[UpProcess, str]
) -> None:
    reader = Reader(context.new_page(), fragile[1])
    for path, command in (
        ("/ui/topics", "headrace topic create orders --partitions 3"),
        ("/ui/groups", "headrace consume orders --group billing"),
        ("/ui/schemas", "headrace schema register orders-value"),
        ("/ui/pipelines", "headrace pipeline init trucks"),
    ):
        page = reader.open(path)
        expect(page.locator(".empty pre")).to_contain_text(command)
    names = page.request.get(f"{reader.url}/api/v1/topics").json()
    made = [each["name"] for each in names if not each["name"].startswith("__")]
    assert made == []  # looking makes nothing
    reader.check()


def test_a_tail_whose_cluster_is_away_does_not_look_well(
    context: BrowserContext, fragile: tuple[UpProcess, str]
) -> None:
    up, url = fragile
    reader = Reader(context.new_page(), url)
    assert reader.page.request.post(f"{url}/api/v1/topics", data={"name": "tailed"}).ok
    page = reader.open("/ui/topics/tailed")
    page.get_by_role("button", name="Live tail").click()
    expect(page.locator("#told")).to_have_text("waiting for messages")
    expect(page.locator("#tail .live-dot")).to_have_class("live-dot on")
    up.kill()
    expect(page.locator("#told")).to_contain_text("The cluster does not answer")
    expect(page.locator("#tail .live-dot")).to_have_class("live-dot")
    expect(page.locator("#away")).to_contain_text("The cluster does not answer")
    up.start()
    expect(page.locator("#told")).to_contain_text("the cluster is back")
    expect(page.locator("#tail .live-dot")).to_have_class("live-dot on")
    reader.forgive(503)
    reader.check()


def test_the_figures_of_a_topic_are_live_while_its_messages_are_shown(
    context: BrowserContext, fragile: tuple[UpProcess, str]
) -> None:
    reader = Reader(context.new_page(), fragile[1])
    assert reader.page.request.post(f"{reader.url}/api/v1/topics", data={"name": "growing"}).ok
    page = reader.open("/ui/topics/growing")
    records = page.locator("#figures dd").first
    expect(records).to_have_text("0")
    assert page.request.post(f"{reader.url}/api/v1/topics/growing/messages", data={"value": "x"}).ok
    expect(records).to_have_text("1")
    reader.check()
