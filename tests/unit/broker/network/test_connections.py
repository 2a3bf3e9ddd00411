import asyncio
from dataclasses import dataclass, field

import pytest

from headrace.broker.network.connections import HELD_SHARE, REPLIES_BYTES, Connections
from headrace.broker.quotas.client_quotas import ClientQuotas
from headrace.broker.settings.config import BrokerConfig
from headrace.protocol.frame import CHUNK_BYTES
from headrace.security.listeners import Listener, SecurityProtocol
from headrace.security.quota.entities import QuotaKey

LISTENER = Listener("PLAINTEXT", SecurityProtocol.PLAINTEXT, is_inter_broker=True)


@dataclass(eq=False)
class Client:
    address: str = "10.0.0.1"
    listener: Listener = LISTENER
    client_id: str | None = None
    last_active: float = 0.0
    authenticating_since: float | None = None
    buffered: int = 0
    held: int = 0
    unsent: int = 0
    unsent_now: int = 0
    events: list[str] = field(default_factory=list)

    def rest(self) -> None:
        self.events.append("rest")

    def mute(self, duration_ms: int) -> None:
        assert 0 < duration_ms <= 1000
        self.events.append("mute")

    def close(self) -> None:
        self.events.append("close")

    def abort(self) -> None:
        self.events.append("abort")


def connections(quotas: ClientQuotas | None = None, **settings: str) -> Connections:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    config = BrokerConfig.of(given)
    return Connections(config, lambda: 0, quotas or ClientQuotas(config))


def test_max_connections_counts_all_addresses() -> None:
    found = connections(max_connections="2")

    assert [found.admit(Client(f"10.0.0.{number}")) for number in range(3)] == [True, True, False]


def test_max_connections_per_ip_counts_one_address_until_a_connection_has_ended() -> None:
    found = connections(max_connections_per_ip="1", max_connections_per_ip_overrides="10.0.0.9:2")
    first, second = Client(), Client()

    assert found.admit(first)
    assert not found.admit(second)
    assert [found.admit(Client("10.0.0.9")) for _ in range(3)] == [True, True, False]
    found.forget(first)
    assert found.admit(second)


def test_changed_settings_are_for_the_next_connections() -> None:
    found = connections(max_connections="1")
    found.admit(Client())

    found.use_config(BrokerConfig.of({"max.connections": "2"}))

    assert found.admit(Client("10.0.0.2"))


def test_the_connection_that_exceeds_the_memory_of_all_is_aborted_soon_and_not_at_once() -> None:
    found = connections(queued_max_request_bytes=str(3 * CHUNK_BYTES))
    first, second = Client(), Client()

    async def receive() -> None:
        found.account(first, 2 * CHUNK_BYTES)
        found.account(second, 2 * CHUNK_BYTES)
        assert second.events == []
        await asyncio.sleep(0)

    asyncio.run(receive())

    assert (first.events, second.events) == ([], ["abort"])


def test_requests_of_throttled_clients_wait_in_bounded_memory() -> None:
    found = connections(queued_max_request_bytes=str(HELD_SHARE * 3 * CHUNK_BYTES))
    first, second, third = Client(), Client(), Client()

    found.hold(first, 2 * CHUNK_BYTES)
    found.hold(second, 2 * CHUNK_BYTES)
    assert (first.events, second.events) == ([], ["abort"])

    found.hold(second, 0)
    found.hold(third, CHUNK_BYTES)
    assert third.events == []


def test_unsent_responses_are_counted_again_before_others_get_less() -> None:
    found = connections()
    slow = Client(unsent_now=REPLIES_BYTES + 1)
    found.admit(slow)
    found.account_replies(slow)
    assert found.holds_too_many_replies

    slow.unsent_now = 0

    assert not found.holds_too_many_replies


@pytest.mark.parametrize(("idle_s", "events"), [(0.5, []), (2.0, ["rest"]), (601.0, ["rest", "close"])])
def test_idle_connections_give_up_their_buffers_and_then_are_closed(idle_s: float, events: list[str]) -> None:
    found, client = connections(), Client()

    async def look() -> None:
        client.last_active = asyncio.get_running_loop().time() - idle_s
        found.admit(client)
        found.rest_quiet()
        found.close_idle()

    asyncio.run(look())

    assert client.events == events


def test_connections_that_are_created_too_fast_wait_and_then_are_refused() -> None:
    found = connections(max_connection_creation_rate="1")  # and a burst of ten
    clients = [Client(f"10.0.0.{number}") for number in range(13)]

    admitted = [found.admit(each) for each in clients]

    assert admitted == [True] * 11 + [False] * 2
    assert [each.events for each in clients[:11]] == [[]] * 10 + [["mute"]]


def test_the_limits_of_a_listener_do_not_apply_to_others() -> None:
    found = connections(
        listeners="IN://:9093,OUT://:9092",
        listener_security_protocol_map="IN:PLAINTEXT,OUT:PLAINTEXT",
        inter_broker_listener_name="IN",
        max_connections="3",
        listener_name_out_max_connections="2",
    )
    inside = Listener("IN", SecurityProtocol.PLAINTEXT, is_inter_broker=True)
    outside = Listener("OUT", SecurityProtocol.PLAINTEXT, is_inter_broker=False)

    assert [found.admit(Client(listener=outside)) for _ in range(3)] == [True, True, False]
    # The limit of the broker is not for the inter-broker listener, whose own is equal to it here.
    assert [found.admit(Client(listener=inside)) for _ in range(4)] == [True, True, True, False]


def test_an_address_beyond_its_quota_is_refused_and_others_are_not() -> None:
    quotas = ClientQuotas(BrokerConfig.of({}))
    quotas.change("ips", "10.0.0.1", {"connection_creation_rate": "1"})
    found = connections(quotas)

    assert [found.admit(Client()) for _ in range(12)] == [True] * 10 + [False] * 2
    assert found.admit(Client("10.0.0.2"))
    assert quotas.meters[QuotaKey.CONNECTION_CREATION_RATE].throttled == 2
    assert not quotas.is_active  # requests of clients are not measured for it


def test_a_flood_of_refused_connections_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    found = connections(max_connections="0")

    for _ in range(1_000):
        found.admit(Client())

    assert len(caplog.records) < 10
