"""Somebody who looks at the console, and notices what should not be."""

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from playwright.sync_api import ConsoleMessage, Error, Locator, Page, Request, expect

TIMEOUT_MS: Final = 60_000  # for a machine that others use as well
_CHECKS: Final = Path(__file__).with_name("checks.js")


class Reader:
    """A page, where it may go, and what it has complained about."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.complaints: list[str] = []
        self.elsewhere: list[str] = []
        page.on("console", self._said)
        page.on("pageerror", self._failed)
        page.on("request", self._asked)

    def open(self, path: str) -> Page:
        """Go to a page of the console, and wait until its scripts have run."""
        self.page.goto(self.url + path)
        self.page.wait_for_load_state("load")
        return self.page

    def dialog(self, button: str) -> Locator:
        """Press a button that opens a dialog, and return that."""
        self.page.get_by_role("button", name=button, exact=True).first.click()
        dialog = self.page.locator("dialog[open]")
        expect(dialog).to_be_visible()
        return dialog

    def unreadable(self) -> list[str]:
        """What has too little contrast with what is behind it."""
        found: list[str] = self.page.evaluate(f"() => {{ {_CHECKS.read_text()} return unreadable(); }}")
        return found

    def nameless(self) -> list[str]:
        """What can be reached by keyboard and has no name that could be read out."""
        found: list[str] = self.page.evaluate(f"() => {{ {_CHECKS.read_text()} return nameless(); }}")
        return found

    def unspoken(self) -> list[str]:
        """What a screen reader would have no words for, and headings that leave out a step."""
        found: list[str] = self.page.evaluate(f"() => {{ {_CHECKS.read_text()} return unspoken(); }}")
        return found

    def cut(self) -> list[str]:
        """Tables that are wider than the card around them."""
        found: list[str] = self.page.evaluate(f"() => {{ {_CHECKS.read_text()} return cut(); }}")
        return found

    def sticking_out(self) -> list[str]:
        """Elements that reach beyond the screen, and are not in a part that scrolls."""
        found: list[str] = self.page.evaluate(f"() => {{ {_CHECKS.read_text()} return stickingOut(); }}")
        return found

    def shifted(self) -> float:
        """How far what was on the page has been pushed about by what came later."""
        found: float = self.page.evaluate(f"() => {{ {_CHECKS.read_text()} return shifted(); }}")
        return found

    def check(self) -> None:
        """Nothing was said on the page's console, nobody else was asked for anything, no script got in."""
        assert not self.complaints, (self.page.url, self.complaints)
        assert not self.elsewhere, (self.page.url, self.elsewhere)
        assert self.page.evaluate("window.hurt") is None, self.page.url

    def forgive(self, status: int) -> None:
        """A browser complains of every answer that refuses; those were asked for."""
        self.complaints = [each for each in self.complaints if f"status of {status}" not in each]

    def leave(self) -> None:
        """Leave nothing behind for whoever comes next."""
        self.page.evaluate("sessionStorage.clear()")
        self.page.goto("about:blank")
        self.page.context.clear_cookies()
        self.page.remove_listener("console", self._said)
        self.page.remove_listener("pageerror", self._failed)
        self.page.remove_listener("request", self._asked)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    def _failed(self, error: Error) -> None:
        self.complaints.append(str(error))

    def _asked(self, request: Request) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.url).netloc:
            self.elsewhere.append(request.url)
