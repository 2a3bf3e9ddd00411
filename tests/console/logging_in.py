"""Logging in to the console of `headrace up --secure`."""

from playwright.sync_api import Page

from headrace.client.properties import parse_properties
from support.process import UpProcess


def log_in(page: Page, user: str, password: str) -> None:
    page.get_by_label("User").fill(user)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


def password_of(up: UpProcess) -> str:
    """The administrator's password."""
    path = up.data / "client.librdkafka.properties"
    return parse_properties(path.read_text(), str(path))["sasl.password"]
