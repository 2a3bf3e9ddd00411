"""`make site`: every link leads somewhere, and nothing comes from another host."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))
LOADING = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src", "object": "data"}
ELSEWHERE = re.compile(r"^(https?:)?//")


class Loads(HTMLParser):
    """What a browser fetches for a page by itself: not where its links lead."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if name == LOADING.get(tag) and value is not None]


def loads(page: Path) -> list[str]:
    parser = Loads()
    parser.feed(page.read_text("utf-8"))
    return parser.found


def styles(site: Path) -> Iterator[tuple[str, str]]:
    for sheet in site.rglob("*.css"):
        for target in re.findall(r"""(?:url\(|@import\s)\s*["']?([^"')\s]+)""", sheet.read_text("utf-8")):
            yield sheet.name, target


def test_every_page_is_built(site: Path) -> None:
    for page in PAGES:
        name = page.removesuffix(".md").replace("README", "index")
        assert (site / f"{name}.html").is_file(), page


def test_no_page_loads_from_another_host(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert all(loads(page) for page in pages)  # else this test looks at nothing
    assert [(page.name, target) for page in pages for target in loads(page) if ELSEWHERE.match(target)] == []


def test_no_stylesheet_loads_from_another_host(site: Path) -> None:
    assert [found for found in styles(site) if ELSEWHERE.match(found[1])] == []


def test_what_pages_load_is_there(site: Path) -> None:
    for page in sorted(site.rglob("*.html")):
        for target in loads(page):
            path = target.partition("?")[0]
            there = site / path.lstrip("/") if path.startswith("/") else page.parent / path
            assert there.exists() or path in {"", "."}, (page.name, target)


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_code_is_one(site: Path, page: str) -> None:
    """A fence that Markdown does not understand is printed as three backticks."""
    name = page.removesuffix(".md").replace("README", "index")
    assert "```" not in re.sub(
        r"<script.*?</script>", "", (site / f"{name}.html").read_text("utf-8"), flags=re.DOTALL
    )


def test_every_list_is_one(site: Path) -> None:
    """A point that follows a paragraph without an empty line between them is part of its sentence."""
    for page in sorted(site.rglob("*.html")):
        for paragraph in re.findall(r"<p>(.*?)</p>", page.read_text("utf-8"), re.DOTALL):
            assert not re.search(r"^(\d+\.|[-*]) ", paragraph, re.MULTILINE), (page.name, paragraph)


def test_the_search_knows_every_page(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    known = {entry["location"].partition("#")[0] for entry in index["docs"]}

    built = {page.removesuffix(".md").replace("README", "index") for page in PAGES}
    assert {f"{name}.html" for name in built} - known - {"index.html"} == set()


def test_a_broken_link_would_be_noticed(tmp_path: Path) -> None:
    """The other tests rely on --strict: it has to object to a page and to an anchor that are not there."""
    (tmp_path / "docs").mkdir()
    settings = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nvalidation:")[2].partition("\nnav:")[0]
    (tmp_path / "mkdocs.yml").write_text(f"site_name: x\nvalidation:{settings}\n", "utf-8")
    for text in ("[x](nowhere.md)", "[x](#nowhere)"):
        (tmp_path / "docs" / "index.md").write_text(f"# x\n\n{text}\n", "utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "mkdocs", "build", "--strict"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode != 0, text
        assert "nowhere" in done.stderr
