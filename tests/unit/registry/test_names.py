"""What subjects are called, and in which context they are."""

import pytest

from headrace.registry import names


@pytest.mark.parametrize(
    ("text", "context", "subject"),
    [
        ("orders", ".", "orders"),
        ("", ".", ""),
        (":.billing:orders", ".billing", "orders"),
        (":.billing:", ".billing", ""),
        (":.billing", ".billing", ""),
        (":.:orders", ".", "orders"),
        (":.a:b:c", ".a", "b:c"),
        (":odd", ".", ":odd"),
    ],
)
def test_a_name_is_a_context_and_a_subject(text: str, context: str, subject: str) -> None:
    assert names.parse(text) == (context, subject)


def test_the_default_context_is_not_written() -> None:
    assert names.normal(":.:orders") == "orders"
    assert names.normal(":.billing:orders") == ":.billing:orders"


def test_a_reference_is_to_the_context_of_whoever_refers_unless_it_names_one() -> None:
    assert names.qualified(":.billing:orders", "common") == ":.billing:common"
    assert names.qualified(":.billing:orders", ":.other:common") == ":.other:common"
    assert names.qualified("orders", "common") == "common"


@pytest.mark.parametrize("text", ["orders", "a/b", "ü", " ", ":.billing:orders", "%", "a" * 1000])
def test_almost_anything_is_a_subject(text: str) -> None:
    assert names.is_valid(text)


@pytest.mark.parametrize(
    "text", ["", "a\nb", "\x00", "\x9f", "__GLOBAL", ":.a:__EMPTY", ":.__GLOBAL:x", ":.a:", "\ud800"]
)
def test_some_things_are_not(text: str) -> None:
    assert not names.is_valid(text)


def test_a_context_may_have_settings_although_it_is_no_subject() -> None:
    assert names.is_valid(":.billing:", for_settings=True)
    assert names.is_valid(":.__GLOBAL:", for_settings=True)
    assert not names.is_valid("__GLOBAL", for_settings=True)
