"""Registry clients of other languages, end to end: `headrace up`, their registering, their records, and ours.

Each is in a program of its own (`registry_clients/`), which does with it what its users do. Python and the
REST proxy read what it wrote, and the other way round; the broker refuses what names no schema of its topic.
"""

import base64
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from typing import Any, Final

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient

from compat.registry_clients.neighbours import Confluent, Proxy
from compat.registry_clients.programs import ClientUnavailable, Program, go_program, node_program
from compat.registry_clients.schemas import AVRO, JSON, PROTOBUF, Format, descriptors, order_class
from http_support.asking import Asking
from support.process import UpProcess

CLIENTS: Final[dict[str, Callable[[], Program]]] = {
    "node-confluent": partial(node_program, "confluent"),
    "node-kafkajs": partial(node_program, "kafkajs"),
    "go-franz": go_program,
}
FORMATS: Final = {each.type: each for each in (AVRO, JSON, PROTOBUF)}
VALIDATED: Final = {"confluent.value.schema.validation": "true"}
ORDERS: Final = [
    {"id": 7, "items": [{"name": "tea"}, {"name": "Käse"}]},
    {"id": -1, "items": [{"name": "cake"}]},
]
# kafkajs' client neither writes nor reads which message of its file a record is: its Protobuf is its own.
EXCHANGES: Final = [
    pytest.param(client, form, marks=[pytest.mark.long] if client == "go-franz" else [])  # it is compiled
    for client in CLIENTS
    for form in FORMATS
    if (client, form) != ("node-kafkajs", "PROTOBUF")
]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    with UpProcess(tmp_path_factory.mktemp("elsewhere")) as process:
        yield process
        assert process.running, process.log_tail()


@pytest.fixture(scope="module")
def gateway(up: UpProcess) -> Iterator[Asking]:
    asking = Asking(up.http)
    yield asking
    asking.close()


@pytest.fixture
def registry(up: UpProcess) -> Iterator[SchemaRegistryClient]:
    """A client that has cached nothing."""
    with SchemaRegistryClient({"url": up.http}) as client:
        yield client


@pytest.fixture(scope="module")
def described() -> bytes:
    return descriptors()


@pytest.fixture
def neighbours(
    up: UpProcess, gateway: Asking, registry: SchemaRegistryClient, described: bytes
) -> list[Confluent | Proxy]:
    return [Confluent(up.bootstrap, registry, order_class(described)), Proxy(gateway, registry)]


@pytest.fixture(scope="module")
def program() -> Iterator[Callable[[str], Program]]:
    """Clients by their names, each started when it is first wanted."""
    with ExitStack() as running:
        started: dict[str, Program] = {}

        def program(client: str) -> Program:
            if client not in started:
                started[client] = running.enter_context(found(client))
            return started[client]

        yield program


def found(client: str) -> Program:
    try:
        return CLIENTS[client]()
    except ClientUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def ask(program: Callable[[str], Program], up: UpProcess, described: bytes) -> Callable[..., Any]:
    """What a client answers, as in `ask("go-franz", AVRO, "read", topic="orders", count=1)`."""
    messages = base64.b64encode(described).decode()
    where = {"http": up.http, "bootstrap": up.bootstrap, "descriptors": messages}

    def ask(client: str, form: Format, verb: str, **more: Any) -> Any:
        return program(client).ask({"verb": verb, **where, **asdict(form), **more})

    return ask


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("client", ["node-confluent", pytest.param("go-franz", marks=pytest.mark.long)])
def test_a_client_registers_evolves_looks_up_and_deletes(
    ask: Callable[..., Any], registry: SchemaRegistryClient, client: str, form: str
) -> None:
    subject = f"{client} {form}"  # which has to be encoded in a path
    said = ask(client, FORMATS[form], "register", subject=subject)
    first, second = (registry.get_version(subject, version) for version in (1, 2))

    assert said == {
        "ids": [first.schema_id, second.schema_id],
        "refused": 409,
        "invalid": 42201,
        "fits": [True, False],
        "found": first.schema_id,
        "version": 2,
        "latest": second.schema_id,
        "versions": [1, 2],
        "text": first.schema.schema_str,
        "level": "FULL",
    }
    removed = ask(client, FORMATS[form], "remove", subject=subject)
    assert removed == {"first": 1, "rest": [2], "gone": 40401, "erased": [1, 2]}
    assert subject not in registry.get_subjects(deleted=True)


@pytest.mark.parametrize("form", FORMATS)
def test_kafkajs_registers_evolves_and_looks_up(
    ask: Callable[..., Any], registry: SchemaRegistryClient, form: str
) -> None:
    subject = f"kafkajs {form}"
    said = ask("node-kafkajs", FORMATS[form], "register", subject=subject)
    first, second = (registry.get_version(subject, version).schema_id for version in (1, 2))
    item = registry.get_latest_version(FORMATS[form].reference).schema_id

    assert said == {
        "ids": [first, second],
        "refused": 409,
        "first": first,
        "latest": second,
        "item": item,
        "missing": 404,
    }


@pytest.mark.parametrize(("client", "form"), EXCHANGES)
def test_what_a_client_writes_is_read_by_python_and_over_http(
    ask: Callable[..., Any], gateway: Asking, neighbours: list[Confluent | Proxy], client: str, form: str
) -> None:
    topic = gateway.topic(client, configs=VALIDATED)
    assert ask(client, FORMATS[form], "write", topic=topic, subject=f"{topic}-value", values=ORDERS) == len(
        ORDERS
    )

    for neighbour in neighbours:
        assert neighbour.read(FORMATS[form], topic, len(ORDERS)) == ORDERS


@pytest.mark.parametrize(("client", "form"), EXCHANGES)
def test_what_python_and_http_write_is_read_by_a_client(
    ask: Callable[..., Any], gateway: Asking, neighbours: list[Confluent | Proxy], client: str, form: str
) -> None:
    topic = gateway.topic(client, configs=VALIDATED)
    # The proxy writes the first message of a .proto file, as Confluent's does; an order is the second.
    writers = neighbours[:1] if form == "PROTOBUF" else neighbours
    for writer in writers:
        writer.write(FORMATS[form], topic, ORDERS)

    written = ORDERS * len(writers)
    assert ask(client, FORMATS[form], "read", topic=topic, count=len(written)) == written


def test_kafkajs_reads_its_own_protobuf(ask: Callable[..., Any], gateway: Asking) -> None:
    topic = gateway.topic("kafkajs", configs=VALIDATED)
    ask("node-kafkajs", PROTOBUF, "write", topic=topic, subject=f"{topic}-value", values=ORDERS)

    assert ask("node-kafkajs", PROTOBUF, "read", topic=topic, count=len(ORDERS)) == ORDERS
