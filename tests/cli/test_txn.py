"""`headrace txn` against a real broker, with transactions of librdkafka, and hanging ones."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from cli.command import Command
from cli.members import wait_until
from cli.test_completion import in_bash
from headrace import Admin, AsyncAdmin, BadSetting, ClientError, Closed, NoSuchTopic, NoSuchTransactionalId
from headrace.testing.process import ClusterProcess
from wire.hanging import leave_hanging


@pytest.fixture
def topic(headrace: Command) -> str:
    name = f"txn-{uuid4().hex[:8]}"
    headrace.ok("topic", "create", name, "--partitions", "2")
    return name


@pytest.fixture
def transactional_id() -> str:
    return f"id-{uuid4().hex[:8]}"


@pytest.fixture
def admin(headrace: Command) -> Iterator[Admin]:
    with Admin(headrace.bootstrap) as admin:
        yield admin


@contextmanager
def ongoing(headrace: Command, transactional_id: str, topic: str) -> Iterator[Producer]:
    """A producer with a transaction open in partition 0, which is aborted at the end."""
    producer = Producer({"bootstrap.servers": headrace.bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"x", partition=0)
    producer.flush(30)
    yield producer
    producer.abort_transaction(30)


def hang(headrace: Command, topic: str, transactional_id: str, partition: int = 0) -> int:
    return leave_hanging(headrace.bootstrap, topic, transactional_id, partition)


def hanging(headrace: Command, *arguments: str) -> Any:
    return headrace.ok("txn", "find-hanging", "--json", *arguments).json


# -- list and describe -----------------------------------------------------------------------------


def test_a_transaction_is_listed_and_described_from_its_begin_to_its_end(
    headrace: Command, topic: str, transactional_id: str
) -> None:
    with ongoing(headrace, transactional_id, topic) as producer:
        (listed,) = headrace.ok("txn", "list", "--pattern", transactional_id, "--json").json
        producer_id = listed["producer_id"]
        assert listed == {
            "transactional_id": transactional_id,
            "state": "Ongoing",
            "producer_id": producer_id,
            "coordinator": 1,
        }
        lines = headrace.ok("txn", "list", "--state", "ongoing").text.splitlines()
        assert [transactional_id, "Ongoing", str(producer_id), "1"] in [line.split() for line in lines]
        (described,) = headrace.ok("txn", "describe", transactional_id, "--json").json
        host, _, port = headrace.bootstrap.partition(":")
        assert described["start_ms"] <= time.time() * 1000
        assert described["duration_ms"] >= 0
        assert described | {"start_ms": 0, "duration_ms": 0, "producer_epoch": 0} == {
            "transactional_id": transactional_id,
            "state": "Ongoing",
            "coordinator": {"id": 1, "host": host, "port": int(port)},
            "producer_id": producer_id,
            "producer_epoch": 0,
            "timeout_ms": 60_000,
            "start_ms": 0,
            "duration_ms": 0,
            "topics": [{"topic": topic, "partitions": [0]}],
        }
        text = headrace.ok("txn", "describe", transactional_id).text.splitlines()
        assert text[0].startswith(f"{transactional_id}: Ongoing for 0:00:")
        assert text[1].startswith(f"producer {producer_id}, epoch ")
        assert text[1].endswith(f"timeout 0:01:00, coordinator 1 at {headrace.bootstrap}")
        assert text[-1].split() == [topic, "0"]
        producer.commit_transaction(30)
        wait_until(
            lambda: (
                headrace.ok("txn", "describe", transactional_id, "--json").json[0]["state"]
                == "CompleteCommit"
            )
        )
        (ended,) = headrace.ok("txn", "describe", transactional_id, "--json").json
        assert (ended["duration_ms"], ended["topics"]) == (None, [])
        producer.begin_transaction()


def test_the_list_can_be_filtered(headrace: Command, topic: str, transactional_id: str) -> None:
    def ids(*filters: str) -> list[str]:
        listed = headrace.ok("txn", "list", "--json", *filters).json
        return [each["transactional_id"] for each in listed]

    with ongoing(headrace, transactional_id, topic):
        (found,) = headrace.ok("txn", "describe", transactional_id, "--json").json
        number = str(found["producer_id"])
        assert ids("--producer-id", number) == [transactional_id]
        assert ids("--producer-id", number, "--state", "Empty", "--state", "ongoing") == [transactional_id]
        assert ids("--producer-id", number, "--state", "CompleteAbort") == []
        assert ids("--producer-id", number, "--open-for", "PT0S") == [transactional_id]
        assert ids("--producer-id", number, "--open-for", "P1D") == []
        assert ids("--pattern", f"{transactional_id[:-1]}.") == [transactional_id]
        assert ids("--pattern", transactional_id[:-1]) == []
    assert ids("--producer-id", number, "--open-for", "PT0S") == []  # it has ended
    assert headrace.ok("txn", "list", "--pattern", "nobody").text == "no transaction matches\n"


def test_bash_completes_transactional_ids(headrace: Command, topic: str, transactional_id: str) -> None:
    with ongoing(headrace, transactional_id, topic):
        assert in_bash(headrace, "txn", "describe", transactional_id[:-2]) == [transactional_id]
    assert in_bash(headrace, "txn", "find") == ["find-hanging"]


def test_producers_of_a_partition_are_described(headrace: Command, topic: str, transactional_id: str) -> None:
    nobody = f"{topic}-0 has no idempotent or transactional producers\n"
    assert headrace.ok("txn", "describe-producers", topic, "--partition", "0").text == nobody
    with ongoing(headrace, transactional_id, topic):
        (found,) = headrace.ok("txn", "describe-producers", topic, "--partition", "0", "--json").json
        assert (found["last_sequence"], found["start_offset"], found["coordinator_epoch"]) == (0, 0, None)
        text = headrace.ok("txn", "describe-producers", topic, "--partition", "0").text
        assert text.splitlines()[1].split()[0] == str(found["producer_id"])


# -- hanging transactions --------------------------------------------------------------------------


def test_a_hanging_transaction_is_found_and_aborted(
    headrace: Command, topic: str, transactional_id: str
) -> None:
    producer_id = hang(headrace, topic, transactional_id)
    headrace.ok("produce", topic, "behind", "--partition", "0")

    assert hanging(headrace, "--topic", topic) == []  # not yet for longer than any transaction may take
    (found,) = hanging(headrace, "--topic", topic, "--open-for", "PT0S")

    assert found["duration_ms"] >= 0
    assert found | {"duration_ms": 0, "last_timestamp_ms": 0} == {
        "topic": topic,
        "partition": 0,
        "producer_id": producer_id,
        "producer_epoch": 0,
        "coordinator_epoch": 0,
        "start_offset": 0,
        "last_timestamp_ms": 0,
        "duration_ms": 0,
        "transactional_id": transactional_id,
    }
    assert found in [
        each | {"duration_ms": found["duration_ms"]}
        for each in hanging(headrace, "--broker", "1", "--open-for", "PT0S")
    ]
    last = headrace.ok("txn", "find-hanging", "--topic", topic, "--open-for", "PT0S").text.splitlines()[-1]
    command = f"txn abort {topic} --partition 0 --start-offset 0"
    assert last == f"1 transaction hangs: abort it with headrace {command}"

    assert headrace.ok(*command.split(), "--yes").text == (
        f"aborted the transaction of producer {producer_id} from offset 0 on in {topic}-0\n"
    )

    assert hanging(headrace, "--topic", topic, "--open-for", "PT0S") == []
    nothing = headrace.ok("txn", "find-hanging", "--topic", topic, "--open-for", "PT0S")
    assert nothing.text == "no transaction hangs\n"
    assert headrace(*command.split(), "--yes").complaint == f"{topic}-0 has no open transaction at offset 0"


def test_a_transaction_that_its_coordinator_knows_does_not_hang_and_is_not_aborted(
    headrace: Command, topic: str, transactional_id: str
) -> None:
    with ongoing(headrace, transactional_id, topic):
        assert hanging(headrace, "--topic", topic, "--open-for", "PT0S") == []
        refused = headrace("txn", "abort", topic, "--partition", "0", "--start-offset", "0", "--yes")
        assert refused.status == 1
        assert "is not hanging: its coordinator ends it" in refused.complaint
        (open_there,) = headrace.ok("txn", "describe-producers", topic, "--partition", "0", "--json").json
        assert open_there["start_offset"] == 0
        number = str(open_there["producer_id"])
        forced = headrace.ok(
            *("txn", "abort", topic, "--partition", "0", "--producer-id", number),
            *("--yes", "--force", "--json"),
        )
        assert forced.json["aborted"]["producer_id"] == open_there["producer_id"]


def test_an_abort_is_asked_about(headrace: Command, topic: str, transactional_id: str) -> None:
    hang(headrace, topic, transactional_id, partition=1)
    command = ("txn", "abort", topic, "--partition", "1", "--start-offset", "0")

    unasked = headrace(*command)
    assert (unasked.status, unasked.complaint.split(":")[0]) == (2, "Confirmation needs a terminal")
    status, said = headrace.answered("n", *command)
    assert status == 1, said
    assert said.endswith("headrace: nothing was aborted\n")
    assert len(hanging(headrace, "--topic", topic, "--open-for", "PT0S")) == 1
    status, said = headrace.answered("y", *command)
    assert status == 0, said
    assert hanging(headrace, "--topic", topic, "--open-for", "PT0S") == []


def test_coordinators_and_leaders_on_several_brokers_are_asked(cluster: ClusterProcess) -> None:
    headrace = Command(cluster.bootstrap)
    headrace.ok("topic", "create", "spread", "--partitions", "6", "--replicas", "2")
    ids = [f"spread-{number}" for number in range(6)]
    with ExitStack() as stack:
        for each in ids:
            stack.enter_context(ongoing(headrace, each, "spread"))
        listed = headrace.ok("txn", "list", "--pattern", "spread-.*", "--json").json
        assert [each["transactional_id"] for each in listed] == ids
        described = headrace.ok("txn", "describe", *ids, "--json").json
        assert [each["coordinator"]["id"] for each in described] == [each["coordinator"] for each in listed]
        assert len({each["coordinator"] for each in listed}) > 1
        with Admin(headrace.bootstrap) as admin:
            producers = admin.describe_producers("spread", 0)
            assert len(producers) == len(ids)
            assert admin.find_hanging_transactions(min_duration_ms=0) == []
            for partition in range(6):  # markers of producers that are unknown there, on every leader
                admin.abort_transaction("spread", partition, 2**40 + partition, 0, 0)
            assert admin.describe_producers("spread", 5)[0].coordinator_epoch == 0


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ("describe nobody", 1, "no coordinator knows transactional id nobody (TRANSACTIONAL_ID_NOT_FOUND)"),
        ("list --pattern (", 1, "pattern '(' is no regular expression of RE2 (INVALID_REGULAR_EXPRESSION)"),
        ("list --state wrong", 2, "'wrong' is not one of"),
        ("list --open-for soon", 2, "--open-for soon: expected a duration such as PT1H30M or P7D."),
        ("find-hanging --topic nowhere", 1, "there is no topic nowhere"),
        ("find-hanging --broker 9", 1, "there is no broker 9, only 1"),
        ("describe-producers nowhere --partition 0", 1, "there is no topic nowhere"),
        ("abort nowhere --partition 0 --start-offset 0", 1, "there is no topic nowhere"),
        ("abort nowhere --partition 0", 2, "Give --start-offset or --producer-id."),
        ("abort nowhere --partition 0 --start-offset 0 --producer-id 1", 2, "Give --start-offset or"),
    ],
)
def test_a_refusal_is_one_sentence(headrace: Command, arguments: str, status: int, said: str) -> None:
    refused = headrace("txn", *arguments.split())
    assert refused.status == status
    assert said in refused.complaint


def test_a_partition_that_does_not_exist_is_refused(headrace: Command, topic: str) -> None:
    refused = headrace("txn", "describe-producers", topic, "--partition", "2")
    assert (refused.status, refused.complaint) == (1, f"{topic} has no partition 2, only 0 to 1")


# -- the SDK ---------------------------------------------------------------------------------------


def test_an_admin_finds_and_aborts_a_hanging_transaction(
    headrace: Command, admin: Admin, topic: str, transactional_id: str
) -> None:
    producer_id = hang(headrace, topic, transactional_id)
    (producer,) = admin.describe_producers(topic, 0)
    assert (producer.producer_id, producer.start_offset) == (producer_id, 0)
    assert [each.state for each in admin.describe_transactions([transactional_id])] == ["Empty"]
    assert transactional_id in [each.transactional_id for each in admin.list_transactions(states=["Empty"])]
    (found,) = admin.find_hanging_transactions([topic], min_duration_ms=0)

    admin.abort_transaction(
        topic, 0, found.producer_id, found.producer_epoch, coordinator_epoch=found.coordinator_epoch + 5
    )

    assert admin.find_hanging_transactions([topic], min_duration_ms=0) == []
    with pytest.raises(ClientError, match=r"coordinator epoch 4 is fenced.*TRANSACTION_COORDINATOR_FENCED"):
        admin.abort_transaction(topic, 0, producer_id, 0, 4)
    admin.abort_transaction(topic, 0, producer_id, 3, 5)
    with pytest.raises(ClientError, match=r"epoch 2 is fenced there \(INVALID_PRODUCER_EPOCH\)"):
        admin.abort_transaction(topic, 0, producer_id, 2, 5)


def test_an_asyncio_admin_does_the_same(headrace: Command, topic: str, transactional_id: str) -> None:
    hang(headrace, topic, transactional_id)

    async def abort_all() -> list[object]:
        async with AsyncAdmin(headrace.bootstrap) as admin:
            for each in await admin.find_hanging_transactions([topic], min_duration_ms=0):
                await admin.abort_transaction(
                    each.topic, each.partition, each.producer_id, each.producer_epoch, each.coordinator_epoch
                )
            return list(await admin.find_hanging_transactions([topic], min_duration_ms=0))

    assert asyncio.run(abort_all()) == []


def test_wrong_arguments_are_refused(admin: Admin, topic: str) -> None:
    bad: Any = admin
    wrong: list[tuple[Callable[[], object], type[ClientError], str]] = [
        (lambda: bad.list_transactions(states="Ongoing"), BadSetting, "it is a list of Empty, Ongoing"),
        (lambda: bad.list_transactions(states=["ongoing"]), BadSetting, "it is a list of Empty, Ongoing"),
        (lambda: bad.list_transactions(producer_ids=["7"]), BadSetting, "producer_ids='7'"),
        (lambda: bad.list_transactions(min_duration_ms=-1), BadSetting, "min_duration_ms=-1"),
        (lambda: bad.list_transactions(pattern=5), BadSetting, "pattern=5"),
        (lambda: bad.describe_transactions([5]), BadSetting, "a transactional id is a str"),
        (lambda: bad.describe_transactions([""]), BadSetting, "a transactional id is a str"),
        (lambda: bad.describe_transactions(["nobody"]), NoSuchTransactionalId, "nobody"),
        (lambda: bad.describe_producers(5, 0), NoSuchTopic, "not by int"),
        (lambda: bad.describe_producers(topic, "0"), BadSetting, "partition='0'"),
        (lambda: bad.abort_transaction(topic, 0, -1, 0, 0), BadSetting, "producer_id=-1"),
        (lambda: bad.abort_transaction(topic, 0, 1, 2**15, 0), BadSetting, "producer_epoch=32768"),
        (lambda: bad.abort_transaction(topic, 7, 1, 0, 0), ClientError, "has no partition 7, only 0 to 1"),
        (lambda: bad.find_hanging_transactions([b"t"]), NoSuchTopic, "not by bytes"),
        (lambda: bad.find_hanging_transactions(min_duration_ms="1"), BadSetting, "min_duration_ms='1'"),
    ]
    for call, kind, said in wrong:
        with pytest.raises(kind, match=said):
            call()
    admin.close()
    with pytest.raises(Closed):
        admin.list_transactions()
