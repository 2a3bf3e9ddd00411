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
from headrace.client.hints import Hint

STEPS = {  # what only the twins, and nobody else, have to know of
    Producer: {"offer", "poll", "serve", "may_block", "transactions"},
    Consumer: {
        *("fetches", "decoded", "decoded_batch", "handing_out", "handing_out_batch", "put_back"),
        *("enter_transaction", "transaction_offsets", "transaction_committed", "rewind"),
    },
    Admin: {"describe_known", "ends"},
}
TWINS = [(Producer, AsyncProducer), (Consumer, AsyncConsumer), (Admin, AsyncAdmin)]


def public(kind: type) -> dict[str, Any]:
    names = (name for name in dir(kind) if not name.startswith("_"))
    return {
        name: getattr(kind, name)
        for name in names
        if not isinstance(inspect.getattr_static(kind, name), Hint)
    }


@pytest.mark.parametrize(("kind", "twin"), TWINS)
def test_a_twin_has_the_same_methods(kind: Any, twin: type) -> None:
    assert set(public(kind)) - STEPS[kind] == set(public(twin)) - {"in_its_thread"}


@pytest.mark.parametrize(("kind", "twin"), TWINS)
def test_a_twin_s_methods_take_the_same_arguments(kind: Any, twin: type) -> None:
    ours = public(kind)
    for name, method in public(twin).items():
        if callable(method) and name != "in_its_thread":
            expected = inspect.signature(ours[name]).parameters.keys() - {"on_delivery"}
            assert inspect.signature(method).parameters.keys() - {"on_delivery"} == expected, name


@pytest.mark.parametrize(("kind", "twin"), TWINS)
def test_a_twin_is_made_of_the_same_arguments(kind: Any, twin: type) -> None:
    named = inspect.signature(kind).parameters.keys() - inspect.signature(twin).parameters.keys()
    assert named <= {"receipts", "on_failure"}  # the one is always on, the other goes with all else


def test_a_name_of_another_client_is_answered_with_the_name_here() -> None:
    made: Any = Producer.__new__(Producer)
    with pytest.raises(
        AttributeError, match=r"^Producer has no `produce`: it is `send\(topic, value, key\)` here"
    ):
        made.produce("orders", b"x")
    with pytest.raises(
        AttributeError, match=r"^Consumer has no `poll`: it is `for message in consumer` here"
    ):
        Consumer.__new__(Consumer).poll(1)  # type: ignore[attr-defined]
    assert not hasattr(made, "produce")


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
