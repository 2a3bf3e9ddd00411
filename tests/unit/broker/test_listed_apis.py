"""What ApiVersions lists to clients, and what it lists to brokers."""

from types import SimpleNamespace
from typing import Any

from headrace.broker.peers.peer import PeerVersions
from headrace.broker.requests.dispatch import HANDLERS, BrokerKey, Context, call, load_handlers
from headrace.protocol.api_versions import BROKER_SOFTWARE
from headrace.protocol.schema.api_versions import ApiVersionsRequest
from headrace.protocol.schema.index import ApiKey
from headrace.security.listeners import Listener, SecurityProtocol


def listed(
    software: str, *, inter_broker: bool = True, controller: PeerVersions | None = None, usage: Any = None
) -> dict[int, tuple[int, int]]:
    """Return the versions that a client or a broker is told, by API key."""
    load_handlers()
    broker: Any = SimpleNamespace(controller_client=SimpleNamespace(versions=controller), handlers=HANDLERS)
    listener = Listener("ANY", SecurityProtocol.PLAINTEXT, is_inter_broker=inter_broker)
    context = Context(broker, listener, None, 3, usage=usage)
    request = ApiVersionsRequest(client_software_name=software, client_software_version="1")
    response: Any = call(HANDLERS[ApiKey.API_VERSIONS], request, context).reply
    return {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}


def test_apis_between_brokers_are_listed_to_brokers_where_they_are_accepted() -> None:
    assert set(BrokerKey) <= listed(BROKER_SOFTWARE).keys()
    assert not set(BrokerKey) & listed(BROKER_SOFTWARE, inter_broker=False).keys()
    assert not set(BrokerKey) & listed("librdkafka").keys()


def test_what_is_forwarded_is_listed_in_the_versions_of_the_controller() -> None:
    controller = PeerVersions({ApiKey.CREATE_TOPICS: range(2, 6), ApiKey.FETCH: range(4, 5)})
    to_clients, to_brokers = (
        listed(software, controller=controller) for software in ("librdkafka", BROKER_SOFTWARE)
    )
    assert to_clients[ApiKey.CREATE_TOPICS] == (2, 5)
    assert ApiKey.CREATE_PARTITIONS not in to_clients
    own = HANDLERS[ApiKey.FETCH].versions
    assert to_clients[ApiKey.FETCH] == (own.start, own.stop - 1)  # this broker answers it itself
    own = HANDLERS[ApiKey.CREATE_TOPICS].versions
    assert to_brokers[ApiKey.CREATE_TOPICS] == (own.start, own.stop - 1)


def test_the_first_request_of_a_broker_is_not_throttled() -> None:
    exempted: list[str] = []
    for software in ("librdkafka", BROKER_SOFTWARE):
        usage = SimpleNamespace(exempt=lambda software=software: exempted.append(software))
        listed(software, usage=usage)
    assert exempted == [BROKER_SOFTWARE]
