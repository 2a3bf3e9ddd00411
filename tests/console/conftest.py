"""One broker with data that looks lived in, a gateway for it, and a Chromium that looks at it.

A page that says something on its console, or asks another host for anything, fails its test.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from cli.secure_up import administrator
from console.reading import TIMEOUT_MS, Reader
from console.seed import open_transactions, register_schemas, seed
from headrace.gateway.serving import serve_in_thread
from support.process import UpProcess

_CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with UpProcess(tmp_path_factory.mktemp("up")) as up:
        seed(up.bootstrap)
        open_transactions(up.bootstrap)
        yield up.bootstrap


@pytest.fixture(scope="session")
def url(bootstrap: str) -> Iterator[str]:
    with serve_in_thread(bootstrap) as served:
        register_schemas(served.url)
        yield served.url


@pytest.fixture(scope="session")
def secure_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    """A cluster with users and ACLs, and its console."""
    with UpProcess(tmp_path_factory.mktemp("secure"), arguments=["--secure"]) as process:
        administrator(process).ok("topic", "create", "orders")
        yield process


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=TIMEOUT_MS)
    with sync_playwright() as playwright:
        found = next((path for name in _CHROMIUMS if (path := shutil.which(name))), None)
        if found is None and not Path(playwright.chromium.executable_path).exists():
            pytest.skip("there is no Chromium here: install one, or run `playwright install chromium`")
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(TIMEOUT_MS)
    yield context
    context.close()


@pytest.fixture(scope="session")
def page(browser: Browser) -> Iterator[Page]:
    """One for all tests: a page of its own for each would take longer than what they test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(TIMEOUT_MS)
    yield context.new_page()
    context.close()


@pytest.fixture
def reader(page: Page, url: str) -> Iterator[Reader]:
    """Somebody at a browser."""
    reader = Reader(page, url)
    yield reader
    reader.check()
    reader.leave()
