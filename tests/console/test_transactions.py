"""Transactions: open, committed, aborted; of real producers, as somebody at a browser sees them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from playwright.sync_api import Locator, expect

from console.reading import Reader
from console.seed import HOSTILE
from headrace.client.admin.admin import Admin
from headrace.client.transactions.admin import TransactionAdmin
from headrace.client.wire.brokers import Brokers


@pytest.fixture(scope="module")
def transactions(bootstrap: str) -> Iterator[TransactionAdmin]:
    with Brokers(bootstrap) as brokers:
        yield TransactionAdmin(brokers)


@pytest.fixture
def topic(bootstrap: str) -> str:
    """A topic of the test's own, with two partitions."""
    name = f"txn-{uuid4().hex[:8]}"
    with Admin(bootstrap) as admin:
        admin.create_topic(name, partitions=2)
    return name


@pytest.fixture
def transactional_id() -> str:
    return f"billing.{uuid4().hex[:8]}"


def begun(bootstrap: str, transactional_id: str, topic: str) -> Producer:
    """A producer with a transaction open in partition 0."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"x", partition=0)
    assert producer.flush(30) == 0
    return producer


@contextmanager
def ongoing(bootstrap: str, transactional_id: str, topic: str) -> Iterator[Producer]:
    producer = begun(bootstrap, transactional_id, topic)
    yield producer
    producer.abort_transaction(30)


def rows(reader: Reader) -> Locator:
    return reader.page.locator("#transactions tbody tr")


# -- the list --------------------------------------------------------------------------------------


def test_an_open_transaction_is_listed_until_it_is_committed(
    reader: Reader, bootstrap: str, topic: str, transactional_id: str, transactions: TransactionAdmin
) -> None:
    producer = begun(bootstrap, transactional_id, topic)
    (found,) = transactions.describe_transactions([transactional_id])
    page = reader.open(f"/ui/transactions?q={transactional_id}")
    expect(rows(reader)).to_have_count(1)
    for text in (transactional_id, "Ongoing", "1 min", str(found.producer_id), "broker 1"):
        expect(rows(reader)).to_contain_text(text)

    producer.commit_transaction(30)
    expect(page.get_by_role("link", name=transactional_id)).to_have_count(0)

    page.get_by_role("combobox", name="State").select_option("any")
    expect(rows(reader)).to_contain_text("CompleteCommit")
    page.get_by_role("combobox", name="State").select_option("CompleteAbort")
    expect(page.locator("#transactions")).to_contain_text("No transaction")


def test_the_list_is_filtered_by_what_brokers_know(
    reader: Reader, bootstrap: str, topic: str, transactional_id: str, transactions: TransactionAdmin
) -> None:
    with ongoing(bootstrap, transactional_id, topic), ongoing(bootstrap, f"{transactional_id}-2", topic):
        page = reader.open("/ui/transactions")
        pattern = page.get_by_role("textbox", name="Id matches")
        pattern.fill(f"{transactional_id}.*")
        expect(rows(reader)).to_have_count(2)
        pattern.fill(transactional_id)
        expect(rows(reader)).to_have_count(1)
        pattern.fill("(")
        expect(page.locator("#transactions .problem")).to_contain_text("is no regular expression of RE2")
        pattern.fill("")

        (found,) = transactions.describe_transactions([f"{transactional_id}-2"])
        producer_id = page.get_by_role("textbox", name="Producer id", exact=True)
        producer_id.fill(str(found.producer_id))
        expect(rows(reader)).to_have_count(1)
        expect(rows(reader)).to_contain_text(f"{transactional_id}-2")
        producer_id.fill("x")
        expect(page.locator("#transactions .problem")).to_have_text(
            "the producer id is 'x': expected a whole number"
        )
        producer_id.fill(str(found.producer_id))
        expect(rows(reader)).to_have_count(1)
        page.get_by_role("combobox", name="Open for over").select_option("1 d")
        expect(page.locator("#transactions")).to_contain_text("No transaction matches")
        expect(page).to_have_url(re.compile(r"older=86400000"))


def test_many_transactional_ids_are_split_into_pages(reader: Reader, bootstrap: str) -> None:
    prefix = uuid4().hex[:8]
    for number in range(55):
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{prefix}-{number:02}"})
        producer.init_transactions(30)
    page = reader.open(f"/ui/transactions?state=any&pattern={prefix}-.*")
    expect(rows(reader)).to_have_count(50)
    expect(page.locator("#count")).to_have_text("55 transactions")
    page.get_by_role("link", name="Next").click()
    expect(rows(reader)).to_have_count(5)
    expect(rows(reader).last).to_contain_text(f"{prefix}-54")
    expect(rows(reader).last).to_contain_text("Empty")


# -- one transaction -------------------------------------------------------------------------------


def test_the_page_of_a_transaction_follows_it_to_its_abort(
    reader: Reader, bootstrap: str, topic: str, transactional_id: str, transactions: TransactionAdmin
) -> None:
    producer = begun(bootstrap, transactional_id, topic)
    (found,) = transactions.describe_transactions([transactional_id])
    page = reader.open("/ui/transactions")
    page.get_by_role("link", name=transactional_id).click()
    expect(page.locator("h1")).to_have_text(transactional_id)
    figures = page.locator("#figures")
    for text in ("Ongoing", "1 min", str(found.producer_id), "broker 1"):
        expect(figures).to_contain_text(text)
    expect(page.locator("#about")).to_contain_text("the coordinator aborts it at")
    (row,) = page.locator("#partitions tbody tr").all()
    assert row.locator("td").all_inner_texts()[:3] == ["0", "1", "1"]  # last stable, high watermark, waiting
    expect(row.get_by_role("link", name=topic, exact=True)).to_have_attribute(
        "href", f"/ui/topics/{topic}?partition=0"
    )

    producer.abort_transaction(30)
    expect(figures).to_contain_text("CompleteAbort")
    expect(page.locator("#about")).to_contain_text("was aborted")
    expect(page.locator("#partitions")).to_have_text("No transaction is open.")


def test_a_hostile_transactional_id_is_text_and_its_page_can_be_reached(
    reader: Reader, bootstrap: str, topic: str
) -> None:
    with ongoing(bootstrap, HOSTILE, topic):
        page = reader.open("/ui/transactions")
        page.get_by_role("link", name=HOSTILE).click()
        expect(page.locator("h1")).to_have_text(HOSTILE)
        page.get_by_role("link", name=f"Producers of {topic} 0").click()
        expect(page.locator("#producers tbody tr")).to_contain_text("from 0")
        assert page.locator("main script, main img").count() == 0


def test_a_transactional_id_that_nobody_has_used_has_a_page_that_says_so(reader: Reader) -> None:
    page = reader.open("/ui/transactions/nobody")
    expect(page.locator("main")).to_contain_text("no coordinator knows transactional id nobody")
    reader.forgive(404)


# -- producers -------------------------------------------------------------------------------------


def test_the_producers_of_a_partition_and_their_open_transactions_are_shown(
    reader: Reader, bootstrap: str, topic: str, transactional_id: str
) -> None:
    with ongoing(bootstrap, transactional_id, topic):
        page = reader.open(f"/ui/topics/{topic}/producers")
        row = page.locator("#producers tbody tr")
        expect(row).to_have_count(1)
        expect(row).to_contain_text("from 0")
        expect(page.locator("#producers")).to_contain_text("Last stable offset 0, high watermark 1")
        page.get_by_role("combobox", name="Partition", exact=True).first.select_option("1")
        expect(page.locator("#producers")).to_contain_text("Partition 1 has no active producers")
