"""`headrace txn` against a real broker, with transactions of librdkafka."""

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
from support.process import ClusterProcess


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


def test_producers_of_a_partition_are_described(headrace: Command, topic: str, transactional_id: str) -> None:
    nobody = f"{topic}-0 has no idempotent or transactional producers\n"
    assert headrace.ok("txn", "describe-producers", topic, "--partition", "0").text == nobody
    with ongoing(headrace, transactional_id, topic):
        (found,) = headrace.ok("txn", "describe-producers", topic, "--partition", "0", "--json").json
        assert (found["last_sequence"], found["start_offset"], found["coordinator_epoch"]) == (0, 0, None)
        text = headrace.ok("txn", "describe-producers", topic, "--partition", "0").text
        assert text.splitlines()[1].split()[0] == str(found["producer_id"])


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
            assert [admin.describe_producers("spread", partition) for partition in range(1, 6)] == [[]] * 5


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ("describe nobody", 1, "no coordinator knows transactional id nobody (TRANSACTIONAL_ID_NOT_FOUND)"),
        ("list --pattern (", 1, "pattern '(' is no regular expression of RE2 (INVALID_REGULAR_EXPRESSION)"),
        ("list --state wrong", 2, "'wrong' is not one of"),
        ("list --open-for soon", 2, "--open-for soon: expected a duration such as PT1H30M or P7D."),
        ("describe-producers nowhere --partition 0", 1, "there is no topic nowhere"),
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


def test_an_asyncio_admin_lists_and_describes_transactions(
    headrace: Command, topic: str, transactional_id: str
) -> None:
    async def look() -> tuple[list[str], list[str], list[int | None]]:
        async with AsyncAdmin(headrace.bootstrap) as admin:
            listed = await admin.list_transactions(states=["Ongoing"], pattern=transactional_id)
            described = await admin.describe_transactions([transactional_id])
            producers = await admin.describe_producers(topic, 0)
            return (
                [each.transactional_id for each in listed],
                [each.state for each in described],
                [each.start_offset for each in producers],
            )

    with ongoing(headrace, transactional_id, topic):
        assert asyncio.run(look()) == ([transactional_id], ["Ongoing"], [0])


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
    ]
    for call, kind, said in wrong:
        with pytest.raises(kind, match=said):
            call()
    admin.close()
    with pytest.raises(Closed):
        admin.list_transactions()
