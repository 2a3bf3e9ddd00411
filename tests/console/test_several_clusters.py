"""One gateway for two clusters: each has its own addresses, and the console has a choice of them."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from console.reading import TIMEOUT_MS, Reader
from headrace.client.admin.admin import Admin
from headrace.gateway.serving import serve_in_thread
from support.process import UpProcess


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with UpProcess(tmp_path_factory.mktemp("other")) as up:
        Admin(up.bootstrap).create_topic("elsewhere", partitions=2)
        yield up.bootstrap


@pytest.fixture(scope="module")
def url(bootstrap: str, other: str) -> Iterator[str]:
    with serve_in_thread({"prod": bootstrap, "test": other}) as served:
        yield served.url


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(TIMEOUT_MS)
    yield context.new_page()
    context.close()


def test_the_header_has_a_choice_of_clusters_and_says_which_one_it_is(reader: Reader) -> None:
    page = reader.open("/ui/topics")
    expect(page).to_have_title("Topics · prod · Headrace")
    expect(page.get_by_role("link", name="orders", exact=True)).to_be_visible()
    page.locator(".clusters summary").click()
    page.get_by_role("link", name="test", exact=True).click()
    expect(page).to_have_url(re.compile("/c/test/ui/$"))
    page.get_by_role("link", name="Topics").first.click()
    expect(page).to_have_url(re.compile("/c/test/ui/topics$"))
    expect(page).to_have_title("Topics · test · Headrace")
    expect(page.get_by_role("link", name="elsewhere", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="orders", exact=True)).to_have_count(0)


def test_every_link_of_a_page_stays_in_its_cluster(reader: Reader) -> None:
    page = reader.page
    seen: set[str] = set()
    for path in (
        "",
        "topics",
        "topics/elsewhere",
        "topics/elsewhere/partitions?sort=-index",
        "topics/elsewhere/settings",
        "brokers/1",
        "brokers/1/drain",
        "new-topic",
        "moves",
        "groups",
        "transactions?state=any",
        "schemas",
        "users",
        "quotas",
        "api",
        "nowhere",
    ):
        reader.open(f"/c/test/ui/{path}")
        attributes = "[...document.querySelectorAll('main a[href], nav a[href], main form[action]')]"
        found = page.evaluate(
            f"{attributes}.map((each) => each.getAttribute('href') ?? each.getAttribute('action'))"
        )
        seen |= {each for each in found if each.startswith("/")}
    assert seen
    assert {each for each in seen if not each.startswith("/c/test/")} == set()
    reader.forgive(404)


def test_changes_are_made_in_the_cluster_of_the_page(reader: Reader, other: str, bootstrap: str) -> None:
    page = reader.open("/c/test/ui/new-topic")
    page.get_by_role("textbox", name="Name", exact=True).fill("made-there")
    page.get_by_role("button", name="Create").click()
    expect(page).to_have_url(re.compile("/c/test/ui/topics/made-there$"))
    dialog = reader.dialog("Produce")
    dialog.get_by_role("textbox", name="Value").fill("hello")
    dialog.get_by_role("button", name="Produce").click()
    expect(dialog.locator(".well")).to_contain_text("Written to partition 0 at offset 0")
    page.reload()
    page.locator("#messages summary").first.click()
    page.get_by_role("link", name="From here").click()
    expect(page).to_have_url(
        re.compile(r"/c/test/ui/topics/made-there\?where=offset&.*partition=0&offset=0$")
    )
    assert "made-there" in {each.name for each in Admin(other).list_topics()}
    assert "made-there" not in {each.name for each in Admin(bootstrap).list_topics()}


def test_charts_and_live_tails_are_those_of_the_cluster(reader: Reader) -> None:
    page = reader.page
    with page.expect_request(re.compile("/c/test/api/v1/counters")):
        reader.open("/c/test/ui/")
    reader.open("/c/test/ui/topics/elsewhere")
    with page.expect_request(re.compile("/c/test/api/v1/topics/elsewhere/tail")):
        page.get_by_role("button", name="Live tail").click()
    page.get_by_role("button", name="Live tail").click()


def test_the_apis_of_a_cluster_are_under_its_prefix(reader: Reader) -> None:
    ask = reader.open("/ui/").request
    topics = {each["name"] for each in ask.get(f"{reader.url}/c/test/api/v1/topics").json()}
    assert "elsewhere" in topics
    assert "orders" in {each["name"] for each in ask.get(f"{reader.url}/api/v1/topics").json()}
    assert ask.get(f"{reader.url}/c/test/subjects").json() == []
    assert 'kafka_topic_partitions{topic="elsewhere"}' in ask.get(f"{reader.url}/c/test/metrics").text()
    for address in ("/c/test", "/c/test/"):
        assert (
            ask.get(reader.url + address, headers={"accept": "text/html"}).url == f"{reader.url}/c/test/ui/"
        )
    at_root = ask.get(f"{reader.url}/c/prod/ui/topics?q=ord", max_redirects=0)
    assert (at_root.status, at_root.headers["location"]) == (307, "/ui/topics?q=ord")
    assert ask.get(f"{reader.url}/c/nobody/ui/topics").status == 404


def test_addresses_in_responses_of_the_rest_proxy_are_those_of_the_cluster(reader: Reader) -> None:
    ask = reader.open("/ui/").request
    here = f"{reader.url}/c/test"
    (cluster,) = ask.get(f"{here}/v3/clusters").json()["data"]
    topics = ask.get(f"{cluster['metadata']['self']}/topics").json()
    assert cluster["metadata"]["self"].startswith(f"{here}/v3/clusters/")
    assert topics["metadata"]["self"].startswith(f"{here}/v3/clusters/")
    kind = {"content-type": "application/vnd.kafka.v2+json"}
    made = ask.post(f"{here}/consumers/readers", data='{"format": "json"}', headers=kind).json()
    assert made["base_uri"].startswith(f"{here}/consumers/readers/instances/")
    assert ask.delete(made["base_uri"], headers=kind).status == 204
