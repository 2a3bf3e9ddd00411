"""One gateway for two secured clusters: each has its own users, sessions and tokens."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from cli.secure_up import administrator
from console.logging_in import log_in, password_of
from console.reading import TIMEOUT_MS
from support.process import ServerProcess, UpProcess

pytestmark = pytest.mark.extended


@pytest.fixture(scope="module")
def other_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    with UpProcess(tmp_path_factory.mktemp("other"), arguments=["--secure", "--no-http"]) as process:
        administrator(process).ok("topic", "create", "elsewhere")
        yield process


@pytest.fixture(scope="module")
def url(secure_up: UpProcess, other_up: UpProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a gateway with the clusters `prod`, at the root, and `test`."""
    files = {name: administrator(up).file for name, up in (("prod", secure_up), ("test", other_up))}
    clusters = [each for name, file in files.items() for each in ("--cluster", f"{name}={file}")]
    log = tmp_path_factory.mktemp("gateway") / "log"
    with ServerProcess(["gateway", "--port", "0", *clusters], log) as gateway:
        yield gateway.http


@pytest.fixture(scope="module")
def logged_in(
    browser: Browser, url: str, secure_up: UpProcess, other_up: UpProcess
) -> Iterator[BrowserContext]:
    """A browser that has logged in to both clusters, one after the other."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    page.goto(f"{url}/ui/topics?q=ord")
    expect(page).to_have_title("Log in · prod · Headrace")
    log_in(page, "admin", password_of(secure_up))
    expect(page).to_have_url(f"{url}/ui/topics?q=ord")
    expect(page.get_by_role("link", name="orders")).to_be_visible()

    page.goto(f"{url}/c/test/ui/topics?q=else")
    expect(page.locator("h1")).to_have_text("Log in to test")
    log_in(page, "admin", password_of(secure_up))
    expect(page.get_by_role("alert")).to_be_visible()  # the password of the other cluster
    expect(page).to_have_url(f"{url}/c/test/ui/login")
    log_in(page, "admin", password_of(other_up))
    expect(page).to_have_url(f"{url}/c/test/ui/topics?q=else")
    expect(page.get_by_role("link", name="elsewhere")).to_be_visible()
    page.close()
    yield context
    context.close()


def token_of(page: Page) -> str:
    return page.locator("meta[name=csrf-token]").get_attribute("content") or ""


def test_a_login_names_its_cluster_and_leads_to_the_others(browser: Browser, url: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{url}/c/test/ui/groups")
    expect(page).to_have_title("Log in · test · Headrace")
    page.get_by_role("link", name="prod", exact=True).click()
    expect(page.locator("h1")).to_have_text("Log in to prod")
    context.close()


def test_the_session_of_one_cluster_is_none_of_the_other(logged_in: BrowserContext, url: str) -> None:
    sessions = {each["name"]: each["value"] for each in logged_in.cookies()}
    assert sessions.keys() == {"headrace-session", "headrace-session-test"}
    for cookie in (
        {"cookie": f"headrace-session={sessions['headrace-session']}"},
        {"cookie": f"headrace-session-test={sessions['headrace-session']}"},
    ):
        page = logged_in.new_page()
        answer = page.request.get(f"{url}/c/test/api/v1/topics", headers=cookie)
        assert answer.status == 401, cookie.keys()
        page.close()


def test_the_token_of_one_cluster_changes_nothing_in_the_other(logged_in: BrowserContext, url: str) -> None:
    page = logged_in.new_page()
    page.goto(f"{url}/ui/topics")
    of_prod = token_of(page)
    page.goto(f"{url}/c/test/ui/topics")
    of_test = token_of(page)
    create = """async ([path, token]) => (await fetch(path, {
        method: "POST", body: JSON.stringify({name: "made"}),
        headers: {"content-type": "application/json", "x-csrf-token": token},
    })).status"""
    assert of_prod != of_test
    assert page.evaluate(create, ["/c/test/api/v1/topics", of_prod]) == 403
    assert page.evaluate(create, ["/api/v1/topics", of_test]) == 403
    assert page.evaluate(create, ["/c/test/api/v1/topics", of_test]) == 201
    page.goto(f"{url}/c/test/ui/topics")
    expect(page.get_by_role("link", name="made")).to_be_visible()
    page.goto(f"{url}/ui/topics")
    expect(page.get_by_role("link", name="made")).to_have_count(0)
    page.close()


def test_a_form_of_another_site_cannot_log_in_or_out(logged_in: BrowserContext, url: str) -> None:
    page = logged_in.new_page()
    for path in ("/c/test/ui/login", "/c/test/ui/logout"):
        answer = page.request.post(url + path, form={}, headers={"origin": "http://elsewhere.example"})
        assert answer.status == 403, path
    page.goto(f"{url}/c/test/ui/topics")
    expect(page.locator("h1")).to_have_text("Topics")
    page.close()


def test_logging_out_of_one_cluster_leaves_the_other_session(logged_in: BrowserContext, url: str) -> None:
    page = logged_in.new_page()
    page.goto(f"{url}/c/test/ui/topics")
    page.get_by_role("button", name="Log out").click()
    expect(page).to_have_url(f"{url}/c/test/ui/login")
    page.goto(f"{url}/c/test/ui/topics")
    expect(page.locator("h1")).to_have_text("Log in to test")
    page.goto(f"{url}/ui/topics")
    expect(page.locator("h1")).to_have_text("Topics")
    page.close()
