"""Names of other clients, and twins that have the same methods."""

import asyncio
import inspect
from typing import Any

import pytest

from headrace import (
    Admin,
    AsyncAdmin,
    AsyncConsumer,
    AsyncProducer,
    BadSetting,
    ClientError,
    Consumer,
    Producer,
)
from headrace.client import hints

STEPS = {  # what only the twins, and nobody else, have to know of
    Producer: {"offer", "poll", "serve", "may_block", "transactions"},
    Consumer: {"fetches", "decoded", "decoded_batch", "handing_out", "handing_out_batch", "put_back"},
    Admin: set[str](),
}
TWINS = [(Producer, AsyncProducer), (Consumer, AsyncConsumer), (Admin, AsyncAdmin)]


def public(kind: type) -> dict[str, Any]:
    names = (name for name in dir(kind) if not name.startswith("_") and not hints.is_missing(kind, name))
    return {name: getattr(kind, name) for name in names}


@pytest.mark.parametrize(("kind", "twin"), TWINS)
def test_a_twin_has_the_same_methods(kind: Any, twin: type) -> None:
    assert set(public(kind)) - STEPS[kind] == set(public(twin))


@pytest.mark.parametrize(("kind", "twin"), TWINS)
def test_a_twin_s_methods_take_the_same_arguments(kind: Any, twin: type) -> None:
    ours = public(kind)
    for name, method in public(twin).items():
        if callable(method):
            expected = inspect.signature(ours[name]).parameters.keys() - {"on_delivery"}
            assert inspect.signature(method).parameters.keys() - {"on_delivery"} == expected, name


@pytest.mark.parametrize(("kind", "twin"), TWINS)
def test_a_twin_is_made_of_the_same_arguments(kind: Any, twin: type) -> None:
    named = inspect.signature(kind).parameters.keys() - inspect.signature(twin).parameters.keys()
    assert named <= {"receipts", "on_failure"}  # the one is always on, the other goes with all else


@pytest.mark.parametrize(
    ("kind", "names"), [(Producer, hints.PRODUCER), (Consumer, hints.CONSUMER), (Admin, hints.ADMIN)]
)
def test_a_hint_is_for_a_name_that_is_not_taken(kind: type, names: dict[str, str]) -> None:
    assert not names.keys() & public(kind).keys()


@pytest.mark.parametrize(
    ("kind", "name", "hint"),
    [
        (Producer, "produce", "it is `send"),
        (AsyncProducer, "produce", "it is `send"),
        (Consumer, "poll", "it is `for message in consumer`"),
        (AsyncConsumer, "getone", "it is `for message in consumer`"),
        (Admin, "create_topics", "it is `create_topic"),
        (AsyncAdmin, "create_topics", "it is `create_topic"),
    ],
)
def test_a_name_of_another_client_s_is_told_what_it_is_here(kind: Any, name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=hint):
        getattr(kind.__new__(kind), name)


def test_a_hint_is_no_attribute() -> None:
    nothing = Producer.__new__(Producer)
    assert not hasattr(nothing, "produce")
    assert "produce" not in dir(nothing)
    assert "send" in dir(nothing)


@pytest.mark.parametrize("kind", [Producer, Consumer, Admin, AsyncProducer])
def test_any_other_name_is_an_attribute_that_there_is_not(kind: Any) -> None:
    nothing = kind.__new__(kind)
    assert not hasattr(nothing, "colour")
    with pytest.raises(AttributeError, match="has no attribute 'colour'"):
        _ = nothing.colour


def test_a_consumer_is_iterated_and_is_no_iterator() -> None:
    nothing: Any = Consumer.__new__(Consumer)
    with pytest.raises(TypeError, match=r"iter\(consumer\)"):
        next(nothing)


@pytest.mark.parametrize(
    "use",
    [
        lambda: AsyncProducer("x:1").send("t", b"v"),
        lambda: AsyncProducer("x:1").flush(),
        lambda: AsyncProducer("x:1").close(),
        lambda: AsyncConsumer("x:1", "t").commit(),
        lambda: anext(AsyncConsumer("x:1", "t").read()),
        lambda: AsyncAdmin("x:1").list_topics(),
        lambda: AsyncAdmin("x:1").close(),
    ],
)
def test_a_twin_that_was_not_opened_says_how_to(use: Any) -> None:
    async def story() -> None:
        await use()

    with pytest.raises(ClientError, match="async with Async"):
        asyncio.run(story())


def test_receipts_are_what_an_asyncproducer_gives_anyway() -> None:
    with pytest.raises(BadSetting, match="always gives them"):
        AsyncProducer("x:1", receipts=True)


@pytest.mark.parametrize(
    ("kind", "name"), [(Consumer, "poll"), (Admin, "create_topics"), (Producer, "produce")]
)
def test_a_hint_names_the_class_that_people_know(kind: type, name: str) -> None:
    with pytest.raises(AttributeError, match=f"^{kind.__name__} has no `{name}`"):
        getattr(kind, name)
