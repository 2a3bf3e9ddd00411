"""Cookies of sessions, and the requests that may use them."""

import pytest
from starlette.datastructures import Headers

from headrace.gateway.guard import ALLOWED_ORIGIN
from headrace.gateway.users.cookies import clear_cookie, comes_from_own_page, may_read, session_id, set_cookie

HOST = {"host": "kafka.example:8443"}
OWN = "https://kafka.example:8443"


def test_a_cookie_is_for_our_pages_only() -> None:
    assert set_cookie("id", secure=True) == (
        "__Host-headrace-session=id; Path=/; HttpOnly; SameSite=Strict; Secure"
    )
    assert set_cookie("id", secure=False) == "headrace-session=id; Path=/; HttpOnly; SameSite=Strict"
    assert "Max-Age=0" in clear_cookie(secure=True)


@pytest.mark.parametrize(
    ("cookie", "expected"),
    [
        ("headrace-session=abc", "abc"),
        ("theme=dark; headrace-session=abc; x=y", "abc"),
        ("headrace-session=", None),
        ("__Host-headrace-session=abc", None),  # of HTTPS
        ("\x00\xff", None),
        ("other=1", None),
    ],
)
def test_the_id_is_found_among_other_cookies(cookie: str, expected: str | None) -> None:
    assert session_id(Headers({"cookie": cookie}), secure=False) == expected


@pytest.mark.parametrize(
    ("headers", "own"),
    [
        ({"origin": OWN}, True),
        ({"origin": OWN, "sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "same-origin"}, True),
        ({}, False),
        ({"sec-fetch-site": "same-site"}, False),
        ({"sec-fetch-site": "none"}, False),
        ({"origin": OWN, "sec-fetch-site": "cross-site"}, False),
        ({"origin": "null"}, False),
        ({"origin": "http://kafka.example:8443"}, False),
        ({"origin": "https://kafka.example"}, False),
    ],
)
def test_a_change_has_to_come_from_our_own_page(headers: dict[str, str], own: bool) -> None:
    assert comes_from_own_page(Headers({**HOST, **headers}), {"scheme": "https"}) is own


def test_a_proxy_with_tls_has_pages_of_its_own_name() -> None:
    headers = Headers({"host": "127.0.0.1:8080", "origin": "https://kafka.example"})
    assert not comes_from_own_page(headers, {"scheme": "http"})
    assert comes_from_own_page(headers, {"scheme": "http", ALLOWED_ORIGIN: True})


@pytest.mark.parametrize(
    ("site", "may"), [("same-origin", True), ("none", True), ("same-site", False), ("cross-site", False)]
)
def test_other_sites_do_not_read_with_our_cookie(site: str, may: bool) -> None:
    assert may_read(Headers({"sec-fetch-site": site})) is may
    assert may_read(Headers({}))
