"""Listeners with SASL: three clients enter with every mechanism, and nobody else gets anything."""

import asyncio
import struct
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from cluster.waiting import until
from headrace.protocol.errors import ErrorCode
from headrace.protocol.records import Record, encode_batch
from headrace.protocol.schema.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from headrace.protocol.schema.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from headrace.protocol.schema.metadata import MetadataRequest
from headrace.protocol.schema.sasl_authenticate import SaslAuthenticateRequest
from headrace.protocol.schema.sasl_handshake import SaslHandshakeRequest
from headrace.security.sasl.exchange import PLAIN, SCRAM_SHA_256, SCRAM_SHA_512
from headrace.security.sasl.scram import ScramClient
from wire.kafka_python import KafkaConsumer, KafkaProducer
from wire.raw import RawClient
from wire.requests import ASK_VERSIONS, fresh_name, produce_request
from wire.secured import ALICE, SecuredCluster, sasl_cluster

TIMEOUT_S: Final = 30
BOB: Final = {"security.protocol": "SASL_PLAINTEXT", "sasl.username": "bob", "sasl.password": "builder"}
MECHANISMS: Final = {PLAIN: ALICE, SCRAM_SHA_256: BOB, SCRAM_SHA_512: BOB}
NUMBERS: Final = {SCRAM_SHA_256: ScramMechanism.SCRAM_SHA_256, SCRAM_SHA_512: ScramMechanism.SCRAM_SHA_512}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    """Two brokers; bob has credentials for both SCRAM mechanisms."""
    with sasl_cluster(tmp_path_factory.mktemp("sasl")) as made:
        store(made, "bob", "builder")
        yield made


def store(cluster: SecuredCluster, user: str, password: str) -> None:
    """Store SCRAM credentials, and wait until both brokers have them."""
    changes = [
        UserScramCredentialUpsertion(user, ScramCredentialInfo(each, 4096), password.encode())
        for each in NUMBERS.values()
    ]
    admin = AdminClient(cluster.settings())
    for done in admin.alter_user_scram_credentials(changes).values():
        done.result(TIMEOUT_S)
    for address in cluster.bootstrap.split(","):
        until(f"{address} knows {user}", partial(enters, address, user, password))


def enters(address: str, user: str, password: str) -> bool:
    """Whether the user gets in at one broker with SCRAM-SHA-256."""
    scram = ScramClient(SCRAM_SHA_256, user, password)
    with RawClient(address) as client:
        client.ask(SaslHandshakeRequest(mechanism=SCRAM_SHA_256), 1)
        challenge = authenticate(client, scram.first().encode()).auth_bytes
        answer = authenticate(client, scram.prove(bytes(challenge).decode()).encode())
    return bool(answer.error_code == ErrorCode.NONE and bytes(answer.auth_bytes) == scram.expected)


def is_refused(address: str, user: str, password: str) -> bool:
    return not enters(address, user, password)


def authenticate(client: RawClient, message: bytes) -> Any:
    return client.ask(SaslAuthenticateRequest(auth_bytes=message), 2)


def make_topic(cluster: SecuredCluster) -> str:
    name = fresh_name("secret")
    admin = AdminClient(cluster.settings())
    for done in admin.create_topics([NewTopic(name, 2, 2)]).values():
        done.result(TIMEOUT_S)
    return name


# -- clients -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_confluent_kafka_writes_and_reads(cluster: SecuredCluster, mechanism: str) -> None:
    topic = make_topic(cluster)
    settings = cluster.settings(MECHANISMS[mechanism] | {"sasl.mechanism": mechanism})
    errors: list[Any] = []
    producer = Producer(settings)
    for number in range(20):
        producer.produce(topic, b"%d" % number, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    assert errors == [None] * 20
    consumer = Consumer(settings | {"group.id": fresh_name("group"), "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    values: list[int] = []
    until("all are read", lambda: values.extend(read(consumer)) or len(values) == 20)  # type: ignore[func-returns-value]
    consumer.close()

    assert sorted(values) == list(range(20))


def read(consumer: Consumer) -> list[int]:
    return [int(each.value()) for each in consumer.consume(100, 0.1) if each.error() is None]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_writes_and_reads(cluster: SecuredCluster, mechanism: str) -> None:
    topic = make_topic(cluster)
    user = MECHANISMS[mechanism]
    settings = {
        "bootstrap_servers": cluster.bootstrap.split(","),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user["sasl.username"],
        "sasl_plain_password": user["sasl.password"],
    }
    producer = KafkaProducer(**settings)
    sent = [producer.send(topic, b"%d" % number) for number in range(10)]
    producer.flush(TIMEOUT_S)
    assert all(each.succeeded() for each in sent)
    producer.close()
    consumer = KafkaConsumer(
        topic, group_id=None, auto_offset_reset="earliest", consumer_timeout_ms=20_000, **settings
    )
    found = sorted(int(next(consumer).value) for _ in range(10))
    consumer.close()

    assert found == list(range(10))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka_writes_and_reads(cluster: SecuredCluster, mechanism: str) -> None:
    topic = make_topic(cluster)
    user = MECHANISMS[mechanism]
    settings = {
        "bootstrap_servers": cluster.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user["sasl.username"],
        "sasl_plain_password": user["sasl.password"],
    }

    async def run() -> list[int]:
        async with AIOKafkaProducer(**settings) as producer:
            for number in range(10):
                await producer.send_and_wait(topic, b"%d" % number)
        async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **settings) as consumer:
            return [int((await consumer.getone()).value) for _ in range(10)]

    assert sorted(asyncio.run(asyncio.wait_for(run(), TIMEOUT_S))) == list(range(10))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_refused_in_words(cluster: SecuredCluster, mechanism: str) -> None:
    user = MECHANISMS[mechanism] | {"sasl.mechanism": mechanism, "sasl.password": "wrong"}
    errors: list[KafkaError] = []
    producer = Producer(cluster.settings(user) | {"error_cb": errors.append})

    def refusals() -> list[str]:
        producer.poll(0.1)
        return [each.str() for each in errors if each.code() == KafkaError._AUTHENTICATION]

    until("the client is refused", lambda: bool(refusals()))
    refused = refusals()
    assert f"invalid credentials with SASL mechanism {mechanism}" in refused[0]


def test_a_wrong_password_is_refused_by_aiokafka(cluster: SecuredCluster) -> None:
    async def run() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=PLAIN,
            sasl_plain_username="alice",
            sasl_plain_password="wrong",
        )
        try:
            await producer.start()
        finally:
            await producer.stop()

    with pytest.raises(AioKafkaError):
        asyncio.run(asyncio.wait_for(run(), TIMEOUT_S))


def test_a_password_that_was_changed_is_in_force_everywhere(cluster: SecuredCluster) -> None:
    store(cluster, "carol", "first")
    store(cluster, "carol", "second")
    first, second = cluster.bootstrap.split(",")
    assert not enters(first, "carol", "first")
    assert not enters(second, "carol", "first")
    deletions = [UserScramCredentialDeletion("carol", each) for each in NUMBERS.values()]
    admin = AdminClient(cluster.settings())
    for done in admin.alter_user_scram_credentials(deletions).values():
        done.result(TIMEOUT_S)
    for address in (first, second):
        until("carol is unknown", partial(is_refused, address, "carol", "second"))

    with pytest.raises(KafkaException, match="RESOURCE_NOT_FOUND"):
        admin.describe_user_scram_credentials(["carol"])["carol"].result(TIMEOUT_S)


# -- the protocol ------------------------------------------------------------------------------


@pytest.fixture
def raw(cluster: SecuredCluster) -> Iterator[RawClient]:
    with RawClient(cluster.bootstrap.split(",")[0]) as client:
        yield client


def log_in(client: RawClient) -> None:
    assert client.ask(SaslHandshakeRequest(mechanism=PLAIN), 1).error_code == ErrorCode.NONE
    assert authenticate(client, b"\0alice\0wonderland").error_code == ErrorCode.NONE


def test_versions_may_be_asked_for_and_nothing_else_before_authentication(raw: RawClient) -> None:
    assert raw.ask(ASK_VERSIONS, 3).error_code == ErrorCode.NONE
    raw.send(MetadataRequest(topics=None), 12)

    assert raw.is_closed_by_the_broker()


@pytest.mark.parametrize(
    "steps",
    [
        [SaslAuthenticateRequest(auth_bytes=b"\0alice\0wonderland")],
        [SaslHandshakeRequest(mechanism=PLAIN), SaslHandshakeRequest(mechanism=PLAIN)],
    ],
    ids=["no handshake", "two handshakes"],
)
def test_steps_in_another_order_end_the_connection(raw: RawClient, steps: list[Any]) -> None:
    for step in steps:
        raw.send(step, 1)
    for step in steps[:-1]:
        raw.receive(step, 1)
    if isinstance(steps[-1], SaslAuthenticateRequest):
        assert raw.receive(steps[-1], 1).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED

    assert raw.is_closed_by_the_broker()


@pytest.mark.parametrize("mechanism", [SCRAM_SHA_256, SCRAM_SHA_512])
def test_the_challenge_of_an_unknown_user_resembles_those_of_others(
    cluster: SecuredCluster, mechanism: str
) -> None:
    """Every broker sends the same one; bob's iterations and salt are librdkafka's."""

    def challenge(address: str, user: str) -> tuple[bytes, bytes]:
        with RawClient(address) as client:
            client.ask(SaslHandshakeRequest(mechanism=mechanism), 1)
            answer = authenticate(client, b"n,,n=%s,r=abc" % user.encode())
        _, salt, iterations = bytes(answer.auth_bytes).split(b",")
        return salt, iterations

    of_bob = challenge(cluster.bootstrap.split(",")[0], "bob")
    found = [challenge(address, "nobody") for address in cluster.bootstrap.split(",")]

    assert found[0] == found[1] != of_bob
    assert [len(each) for each in found[0]] == [len(each) for each in of_bob]


def test_settings_of_sasl_without_a_usable_mechanism_are_refused(cluster: SecuredCluster) -> None:
    entry = ConfigEntry(
        "listener.name.clients.sasl.enabled.mechanisms", "GSSAPI", incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    admin = AdminClient(cluster.settings())
    (changed,) = admin.incremental_alter_configs([resource]).values()
    with pytest.raises(KafkaException, match="GSSAPI is not supported") as error:
        changed.result(TIMEOUT_S)

    assert error.value.args[0].code() == ErrorCode.INVALID_REQUEST


def test_requests_behind_a_failed_authentication_are_not_answered(raw: RawClient) -> None:
    raw.ask(SaslHandshakeRequest(mechanism=PLAIN), 1)
    raw.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2)
    raw.send(MetadataRequest(topics=None), 12)
    while raw.has_something_to_read(1.0):
        frame = raw.receive_frame()
        assert b"secret" not in frame
        assert len(frame) < 200, "only the refusal may come"

    assert raw.is_closed_by_the_broker()


def test_an_unknown_mechanism_is_answered_with_those_that_there_are(raw: RawClient) -> None:
    answer = raw.ask(SaslHandshakeRequest(mechanism="GSSAPI"), 1)

    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert list(answer.mechanisms) == list(MECHANISMS)
    assert raw.is_closed_by_the_broker()


def test_a_client_of_the_old_handshake_sends_its_messages_bare(raw: RawClient) -> None:
    assert raw.ask(SaslHandshakeRequest(mechanism=PLAIN), 0).error_code == ErrorCode.NONE
    message = b"\0alice\0wonderland"
    raw.socket.sendall(struct.pack(">i", len(message)) + message)
    assert raw.receive_frame() == b""

    assert raw.ask(MetadataRequest(topics=[]), 12).brokers


def test_a_wrong_password_of_an_old_client_ends_the_connection(raw: RawClient) -> None:
    raw.ask(SaslHandshakeRequest(mechanism=PLAIN), 0)
    message = b"\0alice\0wrong"
    raw.socket.sendall(struct.pack(">i", len(message)) + message)

    assert raw.is_closed_by_the_broker()


def test_a_large_request_before_authentication_ends_the_connection(raw: RawClient) -> None:
    raw.socket.sendall(struct.pack(">i", 1_000_000))
    assert raw.is_closed_by_the_broker()


@pytest.mark.parametrize("version", [0, 1])
def test_the_first_request_after_authentication_may_be_large(
    cluster: SecuredCluster, raw: RawClient, version: int
) -> None:
    assert raw.ask(SaslHandshakeRequest(mechanism=PLAIN), version).error_code == ErrorCode.NONE
    message = b"\0alice\0wonderland"
    if version == 0:
        raw.socket.sendall(struct.pack(">i", len(message)) + message)
        assert raw.receive_frame() == b""
    else:
        assert authenticate(raw, message).error_code == ErrorCode.NONE
    request = produce_request(make_topic(cluster), encode_batch([Record(None, b"x" * 900_000)]))
    (topic,) = raw.ask(request, 11).responses

    assert topic.partition_responses[0].error_code in {ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER}


def test_a_listener_without_sasl_says_so(broker: Any) -> None:
    with RawClient(broker.bootstrap) as client:
        assert client.ask(SaslHandshakeRequest(mechanism=PLAIN), 1).error_code == ErrorCode.ILLEGAL_SASL_STATE


# -- credentials -------------------------------------------------------------------------------


def upsertion(**changes: Any) -> ScramCredentialUpsertion:
    given: dict[str, Any] = {"name": "dave", "mechanism": 1, "iterations": 4096}
    given |= {"salt": b"s", "salted_password": b"p"}
    return ScramCredentialUpsertion(**given | changes)


@pytest.mark.parametrize(
    ("deletions", "upsertions", "code"),
    [
        ([], [upsertion(name="")], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([], [upsertion(iterations=4095)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([], [upsertion(iterations=16385)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([], [upsertion(salt=b"")], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([], [upsertion(mechanism=3)], ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ([], [upsertion(), upsertion(iterations=5000)], ErrorCode.DUPLICATE_RESOURCE),
        ([ScramCredentialDeletion(name="dave", mechanism=1)], [], ErrorCode.RESOURCE_NOT_FOUND),
        ([ScramCredentialDeletion(name="dave", mechanism=1)], [upsertion()], ErrorCode.DUPLICATE_RESOURCE),
    ],
)
def test_a_credential_that_cannot_be_stored_is_refused(
    raw: RawClient, deletions: list[Any], upsertions: list[Any], code: ErrorCode
) -> None:
    log_in(raw)
    request = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
    (result,) = raw.ask(request, 0).results

    assert result.error_code == code
    assert result.error_message


def test_a_description_has_no_part_of_a_credential(raw: RawClient) -> None:
    log_in(raw)
    everybody = raw.ask(DescribeUserScramCredentialsRequest(users=None), 0).results
    found = {
        each.user: [(info.mechanism, info.iterations) for info in each.credential_infos] for each in everybody
    }
    assert found["bob"] == [(1, 4096), (2, 4096)]
    named = [UserName(name=name) for name in ("nobody", "bob", "bob")]
    results = raw.ask(DescribeUserScramCredentialsRequest(users=named), 0).results

    assert {each.user: each.error_code for each in results} == {
        "nobody": ErrorCode.RESOURCE_NOT_FOUND,
        "bob": ErrorCode.DUPLICATE_RESOURCE,
    }
