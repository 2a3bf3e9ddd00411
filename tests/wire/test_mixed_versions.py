"""Brokers that support different versions of the APIs between them; two brokers that run inside the test.

The other broker is a real one with a smaller table of handlers: it closes the connection on which it gets
anything else. `tests/upgrade` runs brokers of the previous version.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.membership import controller_client
from headrace.broker.peers.peer import PeerVersions
from headrace.broker.requests.dispatch import HANDLERS, BrokerKey, Context, Handler, enabled, load_handlers
from headrace.broker.results import Result
from headrace.broker.server import Broker
from headrace.broker.settings.config import BrokerConfig
from headrace.coordination.embedded.server import Coordinator
from headrace.protocol.headers import decode_response_header
from headrace.protocol.schema.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from headrace.protocol.schema.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from headrace.protocol.schema.index import ApiKey
from headrace.replication.controller import channel
from support.records import make_batch
from wire.raw import frame_of
from wire.requests import ASK_VERSIONS, produce_request
from wire.test_metadata_is_fresh import reply, until

FIRST, SECOND = 1, 2
NOT_LISTED = frozenset(BrokerKey)
WITHOUT_STEP_DOWN: Mapping[int, range] = {BrokerKey.STEP_DOWN: range(1, 2)}

Story = Callable[[Broker, Broker], Coroutine[Any, Any, None]]


def table(versions: Mapping[int, range], unlisted: frozenset[int] = frozenset()) -> dict[int, Handler]:
    """Return the handlers of a broker that supports other `versions`, and does not list all of its APIs."""
    load_handlers()
    listing = HANDLERS[ApiKey.API_VERSIONS]
    handlers: dict[int, Handler] = {
        key: each._replace(versions=versions.get(key, each.versions)) for key, each in HANDLERS.items()
    }

    def api_versions(request: ApiVersionsRequest, context: Context) -> Result:
        response = listing.function(request, context).reply
        assert isinstance(response, ApiVersionsResponse)
        listed = [_listed(each, versions) for each in response.api_keys if each.api_key not in unlisted]
        return Result(ApiVersionsResponse(error_code=response.error_code, api_keys=listed))

    handlers[ApiKey.API_VERSIONS] = listing._replace(function=api_versions)
    return handlers


def _listed(api: ApiVersion, versions: Mapping[int, range]) -> ApiVersion:
    supported = versions.get(api.api_key)
    if supported is None:
        return api
    return ApiVersion(api_key=api.api_key, min_version=supported.start, max_version=supported.stop - 1)


@asynccontextmanager
async def two_brokers(
    root: Path, first: Mapping[int, Handler] | None = None, second: Mapping[int, Handler] | None = None
) -> AsyncIterator[tuple[Broker, Broker]]:
    """Two brokers with these handlers; the first one runs, and is the controller."""
    async with Coordinator(root / "coordinator", port=0, sync=False) as coordinator:
        brokers = [
            _broker(root, broker_id, coordinator.address, handlers)
            for broker_id, handlers in ((FIRST, first), (SECOND, second))
        ]
        await brokers[0].start()
        try:
            yield brokers[0], brokers[1]
        finally:
            await brokers[0].stop()


def _broker(root: Path, broker_id: int, zookeeper: str, handlers: Mapping[int, Handler] | None) -> Broker:
    settings = {
        "broker.id": str(broker_id),
        "log.dirs": str(root / f"broker-{broker_id}"),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "zookeeper.connect": zookeeper,
        "min.insync.replicas": "2",
    }
    broker = Broker(BrokerConfig.of(settings))
    broker.handlers = handlers or broker.handlers
    return broker


def run(root: Path, story: Story, **handlers: Mapping[int, Handler]) -> None:
    async def play() -> None:
        async with two_brokers(root, **handlers) as (first, second), asyncio.timeout(60):
            await second.start()
            try:
                await story(first, second)
            finally:
                await second.stop()

    asyncio.run(play())


async def ask(broker: Broker, request: Any, version: int) -> Any:
    """Return the response of a broker to a client; IncompleteReadError if it closes the connection."""
    endpoint = broker.endpoints[0]
    reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
    try:
        writer.write(frame_of(request, version))
        key = request.__api_key__
        _, body = decode_response_header(key, version, memoryview(await reply(reader)))
        return body
    finally:
        writer.close()


async def listed_to_clients(broker: Broker) -> dict[int, range]:
    response = ApiVersionsResponse.decode(await ask(broker, ASK_VERSIONS, 3), 3)
    return {each.api_key: range(each.min_version, each.max_version + 1) for each in response.api_keys}


def creation(name: str, replicas: int = 2) -> CreateTopicsRequest:
    topic = CreatableTopic(
        name=name, num_partitions=2, replication_factor=replicas, assignments=(), configs=()
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=10_000)


async def create_and_write(first: Broker, second: Broker) -> None:
    """Create a topic with replicas on both; write with acks=all to a partition of each."""
    response = CreateTopicsResponse.decode(await ask(second, creation("t"), 5), 5)
    assert response.topics[0].error_code == 0, response
    await until(lambda: all("t" in each.image.topics for each in (first, second)))
    for index, state in first.image.topics["t"].states.items():
        leader = first if state.leader == FIRST else second
        await until(lambda index=index, leader=leader: len(leader.partition("t", index).isr) == 2)  # type: ignore[misc]
        await ask(leader, produce_request("t", make_batch([b"tea"]), partition=index, acks=-1), 9)
        assert leader.partition("t", index).high_watermark == 1


def test_brokers_are_told_the_apis_between_brokers_and_clients_are_not(tmp_path: Path) -> None:
    async def story(first: Broker, second: Broker) -> None:
        peer = await second.connect_to(FIRST)
        assert peer.versions.supported == {
            key: range(each.versions.stop) if key == ApiKey.PRODUCE else each.versions
            for key, each in enabled(HANDLERS, unstable=False).items()
        }
        peer.close()
        assert not NOT_LISTED & (await listed_to_clients(first)).keys()

    run(tmp_path, story)


@pytest.mark.parametrize("which", ["first", "second"])
def test_a_broker_that_lists_no_api_between_brokers_gets_their_first_versions(
    which: str, tmp_path: Path
) -> None:
    run(tmp_path, create_and_write, **{which: table({}, NOT_LISTED)})


@pytest.mark.parametrize("which", ["first", "second"])
def test_requests_are_sent_in_versions_that_the_other_broker_supports(which: str, tmp_path: Path) -> None:
    earlier: Mapping[int, range] = {
        ApiKey.FETCH: range(4, 16),
        ApiKey.LIST_OFFSETS: range(1, 5),
        ApiKey.CREATE_TOPICS: range(2, 6),
    }
    run(tmp_path, create_and_write, **{which: table(earlier)})


def test_clients_are_told_the_versions_of_the_controller_for_what_is_forwarded(tmp_path: Path) -> None:
    async def story(first: Broker, second: Broker) -> None:
        await until(lambda: second.controller_client.versions is not None)
        listed = await listed_to_clients(second)
        assert listed[ApiKey.CREATE_TOPICS] == range(2, 6)
        assert ApiKey.CREATE_PARTITIONS not in listed
        with pytest.raises(asyncio.IncompleteReadError):  # a client that has connected before the upgrade
            await ask(second, creation("t"), 7)
        await create_and_write(first, second)

    run(
        tmp_path,
        story,
        first=table({ApiKey.CREATE_TOPICS: range(2, 6), ApiKey.CREATE_PARTITIONS: range(90, 91)}),
    )


def test_a_leader_that_cannot_be_asked_to_step_down_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It cannot hand over what it leads when it stops either, and would wait.
    monkeypatch.setattr(controller_client, "_SHUTDOWN_TIMEOUT_S", 0.1)

    async def story(first: Broker, second: Broker) -> None:
        await create_and_write(first, second)
        assert first.controller is not None
        led = next(each for each in second.partitions.values() if each.leadership is not None)
        key, before = led.id, led.version
        wanted = {key: replace(first.controller.model.find(key), leader=FIRST)}
        assert await first.controller._handover.with_consent(wanted) == ({}, {key})
        assert not first.controller._handover.unconfirmed
        assert (led.leadership is not None, led.version) == (True, before)

    run(tmp_path, story, second=table(WITHOUT_STEP_DOWN))
    assert (
        "versions of this broker and of broker 2 are too far apart: StepDown is needed in v0" in caplog.text
    )


def test_a_broker_that_supports_nothing_in_common_does_not_start_and_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "_UNSUPPORTED_RETRY_S", 0.01)
    attempts: list[int] = []
    choose = PeerVersions.choose

    def noted(self: PeerVersions, key: int, versions: range) -> int:
        attempts.append(key)
        return choose(self, key, versions)

    monkeypatch.setattr(PeerVersions, "choose", noted)

    async def story() -> None:
        handlers = table({BrokerKey.UPDATE_METADATA: range(10, 12)})
        async with two_brokers(tmp_path, second=handlers) as (first, second), asyncio.timeout(60):
            starting = asyncio.create_task(second.start())
            await until(lambda: attempts.count(BrokerKey.UPDATE_METADATA) > 3)
            assert first.controller is not None
            assert first.controller.model.unreachable == {SECOND}
            await ask(first, creation("t", replicas=1), 5)  # the other broker serves its clients
            assert not second.ready.is_set()
            starting.cancel()
            await asyncio.wait({starting})
            await second.session.close()

    asyncio.run(story())
    assert caplog.text.count("UpdateMetadata is needed in v8-v9, and the broker supports v10-v11") == 1
    assert caplog.text.count("broker 2 is unreachable") == 1
