"""The documentation as a reader has it who has unplugged the network and opened build/site/index.html."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

pytestmark = pytest.mark.extended

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", f"--site-dir={directory}"],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        check=True,
    )
    return directory


@pytest.fixture
def asked(context: BrowserContext) -> list[str]:
    """Everything that pages ask for."""
    found: list[str] = []
    context.on("request", lambda request: found.append(request.url))
    return found


def test_the_search_works_without_a_server(site: Path, context: BrowserContext, asked: list[str]) -> None:
    page = context.new_page()
    page.goto(f"{site.as_uri()}/index.html")

    page.get_by_placeholder("Search").press_sequentially("under-replicated")

    result = page.locator(".md-search-result__link", has_text="Operations").first
    result.click()
    expect(page).to_have_title("Operations - Headrace")
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.long)])
def test_every_page_asks_nobody_and_fits_a_phone(
    site: Path, context: BrowserContext, asked: list[str], step: int
) -> None:
    """Of `step` pages one is looked at: they have one theme, and a unit test reads what each asks for."""
    page = context.new_page()
    page.set_viewport_size({"width": 360, "height": 740})
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    pages = sorted({*site.glob("*.html")} - {site / "404.html"})  # that is a server's
    for file in pages[::step]:
        page.goto(file.as_uri())
        expect(page.locator("h1").first).to_be_visible()
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), file.name

    assert complaints == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


def test_colours_follow_the_system_until_somebody_chooses(site: Path, context: BrowserContext) -> None:
    page = context.new_page()
    page.emulate_media(color_scheme="dark")
    page.goto(f"{site.as_uri()}/index.html")
    body = page.locator("body")
    expect(body).to_have_attribute("data-md-color-scheme", "slate")

    page.get_by_title("Colours of the system; switch to light").click()

    expect(body).to_have_attribute("data-md-color-scheme", "default")
