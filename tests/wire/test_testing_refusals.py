"""A fault can refuse every API at every version, in the words that the API has for it."""

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.protocol.api import request_class
from headrace.protocol.compiled.structs import all_defaults
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.index import ApiKey
from headrace.testing import Broker
from headrace.testing.faults import api_name
from wire.every_request import ADVERTISED, REQUESTS, Target
from wire.raw import RawClient

NAMES = ("name", "topic", "index", "partition", "partition_index", "partition_id", "group_id", "key")
ALL = pytest.mark.parametrize(
    ("key", "version"), ADVERTISED, ids=lambda each: getattr(each, "name", str(each))
)


@pytest.fixture(scope="module")
def served() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def errors_in(value: Any, place: tuple[object, ...] = ()) -> Iterator[tuple[tuple[object, ...], int]]:
    """Every error code of a response, with the names of what it is about."""
    if isinstance(value, list | tuple):
        for each in value:
            yield from errors_in(each, place)
    fields = [field.name for field in getattr(type(value), "__fields__", ())]
    here = (*place, *(getattr(value, name) for name in NAMES if name in fields))
    for name in fields:
        if name in {"error_code", "partition_error_code"}:
            yield here, getattr(value, name)
        else:
            yield from errors_in(getattr(value, name), here)


@ALL
def test_every_version_of_every_api_can_be_refused(served: Broker, key: ApiKey, version: int) -> None:
    with RawClient(served.bootstrap) as client:
        request = REQUESTS[key](Target(client), version)

        with served.faults.fail(api_name(key), error="POLICY_VIOLATION", times=1):
            refused = dict(errors_in(client.ask(request, version)))
        answered = dict(errors_in(client.ask(request, version)))

    places = [place for place, code in refused.items() if code == ErrorCode.POLICY_VIOLATION]
    assert places
    assert ErrorCode.POLICY_VIOLATION not in answered.values()
    if (key, version) != (
        ApiKey.DELETE_TOPICS,
        6,
    ):  # there an answer knows the name of the id it was asked by
        assert set(places) <= set(answered), "what is refused goes by the names that an answer has"


@ALL
def test_a_request_with_nothing_in_it_can_be_refused_too(served: Broker, key: ApiKey, version: int) -> None:
    with RawClient(served.bootstrap) as client, served.faults.fail(api_name(key), error="POLICY_VIOLATION"):
        client.send(all_defaults(request_class(key)), version)
        if key == ApiKey.PRODUCE:  # that has acks=0, and gets the only answer there is
            assert client.is_closed_by_the_broker()
        else:
            assert client.receive(all_defaults(request_class(key)), version) is not None


@pytest.mark.parametrize(
    ("key", "version", "depth"),
    [
        (ApiKey.FETCH, 12, 2),
        (ApiKey.OFFSET_FETCH, 7, 0),  # as a group's coordinator would
        (ApiKey.OFFSET_FETCH, 8, 1),
        (ApiKey.METADATA, 13, 1),
        (ApiKey.JOIN_GROUP, 9, 0),
        (ApiKey.LEAVE_GROUP, 5, 0),
        (ApiKey.PRODUCE, 9, 2),
    ],
    ids=lambda each: getattr(each, "name", str(each)),
)
def test_an_error_stands_where_clients_look_for_it(
    served: Broker, key: ApiKey, version: int, depth: int
) -> None:
    with RawClient(served.bootstrap) as client:
        request = REQUESTS[key](Target(client), version)
        with served.faults.fail(api_name(key), error="POLICY_VIOLATION"):
            response = client.ask(request, version)

    level = [response]
    for _ in range(depth):
        level = [each for struct in level for each in _first_array_of_errors(struct)]
    assert [struct.error_code for struct in level] == [ErrorCode.POLICY_VIOLATION]


def _first_array_of_errors(struct: Any) -> list[Any]:
    for field in type(struct).__fields__:
        held = getattr(struct, field.name)
        if field.is_array and field.holds_structs and dict(errors_in(held)):
            return list(held)
    raise AssertionError(f"{struct} has no errors below")
