"""Quotas are stored, described and enforced: throttle times in responses, and channels that are muted."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cluster.waiting import until
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.alter_client_quotas import AlterClientQuotasRequest
from headrace.protocol.schema.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from headrace.protocol.schema.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from headrace.protocol.schema.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.protocol.schema.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.protocol.schema.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from headrace.protocol.schema.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from headrace.protocol.schema.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic
from support.records import make_batch
from wire.process import BrokerProcess
from wire.quotas import alter, alteration, any_of, default_of, named, quotas_of, set_quotas
from wire.raw import RawClient
from wire.requests import ASK_VERSIONS, create_topic, fetch_request, fresh_name, produce_request

BATCH = make_batch([b"x" * 100_000])
MUTED_S = 0.3  # for which a muted channel is watched; its throttle time is much longer


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("quotas")) as process:
        yield process
        assert process.complaints() == []


def client(broker: BrokerProcess, client_id: str | None = None) -> RawClient:
    return RawClient(broker.bootstrap, client_id or fresh_name("client"))


@pytest.fixture
def admin(broker: BrokerProcess) -> Iterator[RawClient]:
    with client(broker) as connected:
        yield connected


# -- stored and described --------------------------------------------------------------------------


def test_quotas_are_described_as_they_were_set(admin: RawClient) -> None:
    user, app = fresh_name("ü/ser %<default>*"), fresh_name("app")
    set_quotas(admin, {"user": user, "client-id": app}, producer_byte_rate=1e6, request_percentage=12.5)
    set_quotas(admin, {"user": user, "client-id": None}, consumer_byte_rate=1e6)
    set_quotas(admin, {"user": user}, controller_mutation_rate=0.5)

    found = quotas_of(admin, named("user", user))

    assert found == {
        (("user", user), ("client-id", app)): {"producer_byte_rate": 1e6, "request_percentage": 12.5},
        (("user", user), ("client-id", None)): {"consumer_byte_rate": 1e6},
        (("user", user),): {"controller_mutation_rate": 0.5},
    }
    assert quotas_of(admin, named("user", user), strict=True).keys() == {(("user", user),)}
    assert quotas_of(admin, named("user", user), default_of("client-id")).keys() == {
        (("user", user), ("client-id", None))
    }

    set_quotas(admin, {"user": user, "client-id": app}, producer_byte_rate=None)
    assert quotas_of(admin, named("client-id", app)) == {
        (("user", user), ("client-id", app)): {"request_percentage": 12.5}
    }
    set_quotas(admin, {"user": user, "client-id": app}, request_percentage=None)
    set_quotas(admin, {"user": user, "client-id": None}, consumer_byte_rate=None)
    set_quotas(admin, {"user": user}, controller_mutation_rate=None)
    assert quotas_of(admin, named("user", user)) == {}


def test_a_user_called_default_is_not_the_default_user(admin: RawClient) -> None:
    set_quotas(admin, {"user": "<default>"}, producer_byte_rate=1e9)

    assert quotas_of(admin, default_of("user")) == {}
    assert quotas_of(admin, any_of("user"), strict=True)[("user", "<default>"),] == {
        "producer_byte_rate": 1e9
    }
    set_quotas(admin, {"user": "<default>"}, producer_byte_rate=None)


def test_quotas_that_are_only_validated_are_not_set(admin: RawClient) -> None:
    app = fresh_name("app")

    result = alter(admin, {"client-id": app}, {"producer_byte_rate": 5.0}, validate_only=True)

    assert result.error_code == 0
    assert quotas_of(admin, named("client-id", app)) == {}


def test_invalid_changes_are_refused_and_others_of_the_request_are_made(admin: RawClient) -> None:
    app = {"client-id": fresh_name("app")}
    entries = [
        alteration(app, {"producer_byte_rate": 5.0}),
        alteration(app, {"producer_byte_rate": 6.0}),  # the entity is named twice
        alteration({"client-id": "other"}, {"no_such_rate": 1.0}),
        alteration({"group": "g"}, {"producer_byte_rate": 1.0}),
        alteration({}, {"producer_byte_rate": 1.0}),
    ]

    results = admin.ask(AlterClientQuotasRequest(entries=entries, validate_only=False), 0).entries

    assert [each.error_code for each in results] == [0, *[ErrorCode.INVALID_REQUEST] * 4]
    assert quotas_of(admin, named("client-id", app["client-id"])) == {
        tuple(app.items()): {"producer_byte_rate": 5.0}
    }
    set_quotas(admin, app, producer_byte_rate=None)


def test_an_invalid_filter_is_answered_with_an_error(admin: RawClient) -> None:
    for type_, code in (("group", ErrorCode.UNSUPPORTED_VERSION), ("", ErrorCode.INVALID_REQUEST)):
        component = ComponentData(entity_type=type_, match_type=2, match=None)
        response = admin.ask(DescribeClientQuotasRequest(components=[component], strict=False), 1)
        assert (response.error_code, response.entries) == (code, None)


def test_credentials_and_quotas_of_a_user_do_not_disturb_each_other(admin: RawClient) -> None:
    user = fresh_name("user")
    upsertion = ScramCredentialUpsertion(
        name=user, mechanism=1, iterations=4096, salt=b"salt", salted_password=b"salted"
    )
    ask_user = DescribeUserScramCredentialsRequest(users=[UserName(name=user)])

    set_quotas(admin, {"user": user, "client-id": "app"}, producer_byte_rate=1e9)
    admin.ask(AlterUserScramCredentialsRequest(deletions=(), upsertions=[upsertion]), 0)
    set_quotas(admin, {"user": user}, producer_byte_rate=1e9)
    assert admin.ask(ask_user, 0).results[0].credential_infos[0].iterations == 4096

    result = alter(admin, {"user": user}, {"producer_byte_rate": None, "SCRAM-SHA-256": None})
    assert result.error_code == 0
    assert admin.ask(ask_user, 0).results[0].credential_infos[0].iterations == 4096

    set_quotas(admin, {"user": user}, consumer_byte_rate=1e9)
    deletion = ScramCredentialDeletion(name=user, mechanism=1)
    (deleted,) = admin.ask(AlterUserScramCredentialsRequest(deletions=[deletion], upsertions=()), 0).results
    assert deleted.error_code == 0
    assert admin.ask(ask_user, 0).results[0].error_code == ErrorCode.RESOURCE_NOT_FOUND
    assert quotas_of(admin, named("user", user)) == {
        (("user", user),): {"consumer_byte_rate": 1e9},
        (("user", user), ("client-id", "app")): {"producer_byte_rate": 1e9},
    }


def test_quotas_outlive_the_broker(tmp_path: Path) -> None:
    entity = {"user": "alice", "client-id": None}
    with BrokerProcess(tmp_path / "data") as process, RawClient(process.bootstrap) as admin:
        set_quotas(admin, entity, producer_byte_rate=7.0)
        set_quotas(admin, {"ip": "10.9.8.7"}, connection_creation_rate=7.0)

    with BrokerProcess(tmp_path / "data") as process, RawClient(process.bootstrap) as admin:
        assert quotas_of(admin) == {
            tuple(entity.items()): {"producer_byte_rate": 7.0},
            (("ip", "10.9.8.7"),): {"connection_creation_rate": 7.0},
        }


# -- enforced --------------------------------------------------------------------------------------


def test_a_producer_beyond_its_quota_is_told_and_muted(broker: BrokerProcess, admin: RawClient) -> None:
    topic, app = fresh_name(), fresh_name("app")
    create_topic(admin, topic)
    set_quotas(admin, {"client-id": app}, producer_byte_rate=5_000)

    with client(broker, app) as producer, client(broker, app) as second:
        assert second.ask(produce_request(topic, make_batch([b"x"])), 9).throttle_time_ms == 0
        answer = producer.ask(produce_request(topic, BATCH), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
        # 100 KB over the 10 s of all complete samples are 10 KB/s: 20 s in all keep to 5 KB/s.
        assert 9_000 <= answer.throttle_time_ms <= 11_000

        producer.send(ASK_VERSIONS, 0)
        assert not producer.has_something_to_read(MUTED_S)
        # Another connection of the client is not muted, until it uses the quota again.
        assert second.ask(ASK_VERSIONS, 0).error_code == 0
        assert second.ask(produce_request(topic, BATCH), 9).throttle_time_ms > answer.throttle_time_ms


def test_a_producer_that_connects_again_after_each_request_keeps_to_its_quota(
    broker: BrokerProcess, admin: RawClient
) -> None:
    topic, app = fresh_name(), fresh_name("app")
    create_topic(admin, topic)
    set_quotas(admin, {"client-id": app}, producer_byte_rate=5_000)
    with client(broker, app) as producer:
        assert producer.ask(produce_request(topic, BATCH), 9).throttle_time_ms > 0

    with client(broker, app) as again, client(broker, app) as without_acks, client(broker) as other:
        again.send(produce_request(topic, BATCH), 9)
        without_acks.send(produce_request(topic, BATCH, acks=0), 9)
        assert not again.has_something_to_read(MUTED_S)
        assert not producer_wrote_more_than(admin, topic, 1)
        assert other.ask(produce_request(topic, BATCH), 9).throttle_time_ms == 0
        with client(broker, app) as consumer:  # another quota
            assert consumer.ask(fetch_request(topic), 12).throttle_time_ms == 0
        set_quotas(admin, {"client-id": app}, producer_byte_rate=5e6)
        with client(broker, app) as producer:
            assert producer.ask(produce_request(topic, BATCH), 9).throttle_time_ms == 0


def producer_wrote_more_than(admin: RawClient, topic: str, batches: int) -> bool:
    partition = admin.ask(fetch_request(topic), 12).responses[0].partitions[0]
    return int(partition.high_watermark) > batches


def test_a_muted_connection_goes_on_when_the_throttle_time_of_its_client_is_over(
    broker: BrokerProcess, admin: RawClient
) -> None:
    topic, app = fresh_name(), fresh_name("app")
    create_topic(admin, topic)
    set_quotas(admin, {"client-id": app}, producer_byte_rate=9_500)

    for _ in range(2):
        with client(broker, app) as producer:
            answer = producer.ask(produce_request(topic, BATCH), 9)
            assert answer.responses[0].partition_responses[0].error_code == 0
            assert answer.throttle_time_ms > 0


@pytest.mark.parametrize(
    ("quotas", "requests"),
    [
        ({"consumer_byte_rate": 5_000.0}, lambda topic: (fetch_request(topic), 12)),
        ({"controller_mutation_rate": 0.1}, lambda _topic: (create(fresh_name(), 3), 5)),
    ],
    ids=["consumer_byte_rate", "controller_mutation_rate"],
)
def test_other_quotas_hold_for_a_new_connection_too(
    broker: BrokerProcess, admin: RawClient, quotas: dict[str, float | None], requests: Any
) -> None:
    topic, app = fresh_name(), fresh_name("app")
    create_topic(admin, topic)
    admin.ask(produce_request(topic, BATCH), 9)
    set_quotas(admin, {"client-id": app}, **quotas)
    with client(broker, app) as one:
        assert one.ask(*requests(topic)).throttle_time_ms > 0

    with client(broker, app) as again:
        assert again.ask(ASK_VERSIONS, 0).error_code == 0
        again.send(*requests(topic))
        assert not again.has_something_to_read(MUTED_S)


def test_pipelined_produces_and_a_producer_without_acks_are_throttled(
    broker: BrokerProcess, admin: RawClient
) -> None:
    topic, app = fresh_name(), fresh_name("app")
    create_topic(admin, topic)
    set_quotas(admin, {"client-id": app}, producer_byte_rate=5_000)

    with client(broker, app) as producer:
        producer.send(produce_request(topic, BATCH, acks=0), 9)
        producer.send(ASK_VERSIONS, 0)
        assert not producer.has_something_to_read(MUTED_S)


def test_a_muted_channel_is_read_again_after_the_throttle_time(
    broker: BrokerProcess, admin: RawClient
) -> None:
    topic, app = fresh_name(), fresh_name("app")
    create_topic(admin, topic)
    set_quotas(admin, {"client-id": app}, producer_byte_rate=9_500)

    with client(broker, app) as producer:
        answer = producer.ask(produce_request(topic, BATCH), 9)
        assert 0 < answer.throttle_time_ms < 2_000
        assert producer.ask(ASK_VERSIONS, 0).error_code == 0


@pytest.mark.parametrize("version", range(4, 19))
def test_a_consumer_beyond_its_quota_gets_an_empty_response(
    broker: BrokerProcess, admin: RawClient, version: int
) -> None:
    topic, app = fresh_name(), fresh_name("app")
    topic_id = create_topic(admin, topic)
    for _ in range(3):
        admin.ask(produce_request(topic, BATCH), 9)
    set_quotas(admin, {"client-id": app}, consumer_byte_rate=15_000)

    with client(broker, app) as consumer:
        request = fetch_request(topic_id if version >= 13 else topic)
        first = consumer.ask(request, version)
        assert first.throttle_time_ms == 0
        # The quota allows 150 KB in 10 s: one batch of three fits.
        assert len(first.responses[0].partitions[0].records) == len(BATCH)

        second = consumer.ask(request, version)
        assert second.throttle_time_ms > 0
        assert (second.error_code, list(second.responses)) == (0, [])


def test_a_throttled_fetch_leaves_no_session_that_the_client_cannot_use(
    broker: BrokerProcess, admin: RawClient
) -> None:
    topic, app = fresh_name(), fresh_name("app")
    create_topic(admin, topic)
    admin.ask(produce_request(topic, BATCH), 9)
    set_quotas(admin, {"client-id": app}, consumer_byte_rate=5_000)

    with client(broker, app) as consumer:
        response = consumer.ask(fetch_request(topic, session_epoch=0), 12)

    assert response.throttle_time_ms > 0
    assert (response.session_id, list(response.responses)) == (0, [])


def test_time_of_requests_is_a_quota_and_its_throttle_time_is_at_most_a_sample(
    broker: BrokerProcess, admin: RawClient
) -> None:
    app = fresh_name("app")
    set_quotas(admin, {"client-id": app}, request_percentage=0.0001)

    with client(broker, app) as greedy:
        answers = [greedy.ask(MetadataRequest(topics=None), version) for version in (12, 12)]
    assert [each.throttle_time_ms for each in answers] == [1_000] * 2


def test_followers_are_exempt(broker: BrokerProcess, admin: RawClient) -> None:
    topic, app = fresh_name(), fresh_name("app")
    create_topic(admin, topic)
    admin.ask(produce_request(topic, BATCH), 9)
    set_quotas(admin, {"client-id": app}, consumer_byte_rate=1, request_percentage=0.0001)

    with client(broker, app) as follower:
        request = fetch_request(topic)
        setattr(request, "replica_id", 7)  # noqa: B010  frozen for the type checker
        response = follower.ask(request, 12)

    assert response.throttle_time_ms == 0
    assert len(response.responses) == 1


def create(name: str, partitions: int) -> CreateTopicsRequest:
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=()
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=10_000)


def test_mutations_beyond_the_quota_are_refused_in_new_versions(
    broker: BrokerProcess, admin: RawClient
) -> None:
    app, first, second = fresh_name("app"), fresh_name(), fresh_name()
    set_quotas(admin, {"client-id": app}, controller_mutation_rate=0.1)  # and a burst of 1.1

    with client(broker, app) as one:
        made = one.ask(create(first, 3), 7)
        assert (made.topics[0].error_code, made.throttle_time_ms) == (0, 0)
    with client(broker, app) as one:
        refused = one.ask(create(second, 1), 6)
        assert refused.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert 10_000 < refused.throttle_time_ms <= 20_000
        one.send(ASK_VERSIONS, 0)
        assert not one.has_something_to_read(MUTED_S)
    with client(broker, app) as one:
        grown = CreatePartitionsTopic(name=first, count=4, assignments=None)
        refused = one.ask(CreatePartitionsRequest(topics=[grown], timeout_ms=10_000, validate_only=False), 3)
        assert refused.results[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    with client(broker, app) as one:
        named_topic = DeleteTopicState(name=first, topic_id=bytes(16))
        refused = one.ask(DeleteTopicsRequest(topics=[named_topic], timeout_ms=10_000), 6)
        assert refused.responses[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED

    assert _partitions(admin, first) == 3
    assert _partitions(admin, second) == 0


def test_mutations_beyond_the_quota_are_made_and_throttled_in_old_versions(
    broker: BrokerProcess, admin: RawClient
) -> None:
    app, topic = fresh_name("app"), fresh_name()
    set_quotas(admin, {"client-id": app}, controller_mutation_rate=0.1)

    with client(broker, app) as old:
        made = old.ask(create(topic, 3), 5)

    assert made.topics[0].error_code == 0
    assert 10_000 < made.throttle_time_ms <= 20_000
    assert _partitions(admin, topic) == 3


def test_topics_that_metadata_requests_create_are_charged(broker: BrokerProcess, admin: RawClient) -> None:
    app, topics = fresh_name("app"), [fresh_name() for _ in range(3)]
    set_quotas(admin, {"client-id": app}, controller_mutation_rate=0.01)  # and a burst of 0.11

    with client(broker, app) as one:
        named = [MetadataRequestTopic(name=topic) for topic in topics]
        found = one.ask(MetadataRequest(topics=named, allow_auto_topic_creation=True), 12)
    codes = sorted(each.error_code for each in found.topics)
    assert codes == [ErrorCode.NONE, *[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2]
    with client(broker, app) as one:
        made = one.ask(create(fresh_name(), 1), 7)
        assert made.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED

    assert sorted(_partitions(admin, topic) for topic in topics) == [0, 0, 1]


def _partitions(admin: RawClient, topic: str) -> int:
    response = admin.ask(MetadataRequest(topics=None), 12)
    return sum(len(each.partitions) for each in response.topics if each.name == topic)


def test_a_request_that_is_only_validated_is_not_charged(broker: BrokerProcess, admin: RawClient) -> None:
    app = fresh_name("app")
    set_quotas(admin, {"client-id": app}, controller_mutation_rate=0.1)
    request = create(fresh_name(), 100)
    setattr(request, "validate_only", True)  # noqa: B010  frozen for the type checker

    with client(broker, app) as one:
        assert [one.ask(request, 7).throttle_time_ms for _ in range(2)] == [0, 0]


def test_a_quota_that_is_removed_no_longer_applies(broker: BrokerProcess, admin: RawClient) -> None:
    topic, app = fresh_name(), fresh_name("app")
    create_topic(admin, topic)
    set_quotas(admin, {"client-id": app}, producer_byte_rate=1)
    with client(broker, app) as producer:
        assert producer.ask(produce_request(topic, BATCH), 9).throttle_time_ms > 0

    set_quotas(admin, {"client-id": app}, producer_byte_rate=None)

    with client(broker, app) as producer:
        assert producer.ask(produce_request(topic, BATCH), 9).throttle_time_ms == 0


def test_many_client_ids_do_not_disturb_the_broker(broker: BrokerProcess, admin: RawClient) -> None:
    """A user's default quota: each of these client ids has a sensor of its own."""
    set_quotas(admin, {"user": "ANONYMOUS", "client-id": None}, request_percentage=100_000)
    try:
        with client(broker) as one:
            for _ in range(2_000):
                setattr(one, "_client_id", fresh_name("hostile"))  # noqa: B010
                assert one.ask(ASK_VERSIONS, 3).throttle_time_ms == 0
    finally:
        set_quotas(admin, {"user": "ANONYMOUS", "client-id": None}, request_percentage=None)


def test_a_client_that_disconnects_while_it_is_muted_is_forgotten(
    broker: BrokerProcess, admin: RawClient
) -> None:
    topic, app = fresh_name(), fresh_name("app")
    create_topic(admin, topic)
    set_quotas(admin, {"client-id": app}, producer_byte_rate=9_500)
    before = broker.open_sockets

    for _ in range(2):
        with client(broker, app) as producer:
            answer: Any = producer.ask(produce_request(topic, BATCH), 9)
            assert answer.throttle_time_ms > 0

    until("the sockets are closed", lambda: broker.open_sockets <= before)


# -- connections -----------------------------------------------------------------------------------


def test_an_address_that_connects_too_often_is_refused(own_broker: BrokerProcess) -> None:
    with RawClient(own_broker.bootstrap) as admin:
        set_quotas(admin, {"ip": "127.0.0.1"}, connection_creation_rate=1.0)
        served = [_is_served(own_broker) for _ in range(60)]
        assert all(served[:10])  # a burst of ten is allowed, and about one per second
        assert not all(served)

        set_quotas(admin, {"ip": "127.0.0.1"}, connection_creation_rate=None)
        assert all(_is_served(own_broker) for _ in range(60))


def _is_served(broker: BrokerProcess) -> bool:
    """Whether the broker serves a new connection."""
    try:
        with RawClient(broker.bootstrap) as one:
            return bool(one.ask(ASK_VERSIONS, 0).error_code == 0)
    except ConnectionError:
        return False


def test_a_connection_beyond_the_rate_of_the_broker_waits_and_is_served(own_broker: BrokerProcess) -> None:
    with RawClient(own_broker.bootstrap) as admin:
        change = AlterableConfig(name="max.connection.creation.rate", config_operation=0, value="2")
        resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[change])
        answer = admin.ask(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
        assert answer.responses[0].error_code == 0

    with ExitStack() as stack:  # a burst of twenty is allowed
        clients = [stack.enter_context(RawClient(own_broker.bootstrap)) for _ in range(21)]
        for each in clients:
            each.send(ASK_VERSIONS, 0)
        assert [each.receive(ASK_VERSIONS, 0).error_code for each in clients] == [0] * 21
