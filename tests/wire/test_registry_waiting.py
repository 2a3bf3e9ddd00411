"""Who waits for the registry, and who does not."""

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from threading import Event

import anyio
import pytest
from anyio import to_thread
from starlette.testclient import TestClient

from headrace.client.errors import Unreachable
from headrace.gateway.app import create_app
from headrace.gateway.configuration import GatewaySettings
from headrace.gateway.reach import Reach
from headrace.gateway.registry.registry import THREADS, SchemaRegistry, in_registry_thread
from headrace.registry.formats import Schema, SchemaType
from headrace.registry.library import Comparison
from headrace.registry.registration import SubmittedSchema
from headrace.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def registry(broker: Broker) -> Iterator[SchemaRegistry]:
    with closing(Reach(GatewaySettings(bootstrap=broker.bootstrap))) as reach:
        yield SchemaRegistry(reach)


def enum(*symbols: str) -> SubmittedSchema:
    listed = ",".join(f'"{each}"' for each in symbols)
    text = f'{{"type":"enum","name":"E","symbols":[{listed}]}}'
    return SubmittedSchema(Schema(SchemaType.AVRO, text))


def test_the_registry_is_there_for_others_while_schemas_are_compared(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What others register meanwhile is compared with, too."""
    registry.register("s", enum("A"))
    compared: list[list[int]] = []
    compare = Comparison.messages

    def meanwhile(comparison: Comparison) -> list[str]:
        assert not registry._lock.locked()
        compared.append([version for version, _ in comparison.olds])
        if len(compared) == 1:
            registry.register("s", enum("A", "B"))
        return compare(comparison)

    monkeypatch.setattr(Comparison, "messages", meanwhile)

    assert registry.register("s", enum("A", "B", "C")).version == 3
    assert compared == [[1], [1], [2]]  # ours, the other one, ours again


def test_a_schema_that_was_read_is_known_by_its_id_though_nobody_asked_for_it_before() -> None:
    with Broker() as gone, closing(Reach(GatewaySettings(bootstrap=gone.bootstrap))) as reach:
        registry = SchemaRegistry(reach)
        made = registry.register("s", enum("A"))
        gone.stop()

        assert registry.by_id(made.id) == made
        with pytest.raises(Unreachable):
            registry.by_id(made.id + 1)


def test_those_who_wait_for_the_registry_have_threads_of_their_own() -> None:
    async def all_wait() -> str:
        over, begun = Event(), Event()
        async with anyio.create_task_group() as waiting:
            for _ in range(THREADS):
                waiting.start_soon(in_registry_thread, over.wait)
            waiting.start_soon(in_registry_thread, begun.set)
            await anyio.wait_all_tasks_blocked()
            answer = await to_thread.run_sync(lambda: "another's")
            assert not begun.is_set()
            over.set()
        return answer

    assert anyio.run(all_wait) == "another's"


def test_a_route_of_the_registry_runs_in_one_of_them(broker: Broker) -> None:
    app = create_app(GatewaySettings(bootstrap=broker.bootstrap))
    with TestClient(app, base_url="http://localhost") as client:
        portal = client.portal
        assert portal is not None
        before = portal.call(lambda: to_thread.current_default_thread_limiter().total_tokens)
        portal.call(_allow_no_shared_threads)
        try:
            assert client.get("/subjects").status_code == 200
        finally:
            portal.call(partial(_allow, before))


def _allow_no_shared_threads() -> None:
    limiter = to_thread.current_default_thread_limiter()
    limiter.total_tokens = 1
    limiter.acquire_on_behalf_of_nowait("a test")


def _allow(tokens: float) -> None:
    limiter = to_thread.current_default_thread_limiter()
    limiter.release_on_behalf_of("a test")
    limiter.total_tokens = tokens
