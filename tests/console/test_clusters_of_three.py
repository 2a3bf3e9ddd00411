"""Three brokers: partitions are moved, a broker is drained, and another one dies."""

import os
import re
import signal
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from playwright.sync_api import Browser, Page, expect

from console.reading import TIMEOUT_MS, Reader
from headrace.client.admin.admin import Admin
from headrace.client.cluster.cluster import Cluster
from headrace.gateway.console.formats import UNKNOWN
from headrace.gateway.serving import serve_in_thread
from http_support.asking import wait_until
from support.process import ClusterProcess


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    """No group is used here: its topic would have three replicas, and no broker could be drained."""
    with ClusterProcess(tmp_path_factory.mktemp("three")) as up:
        admin = Admin(up.bootstrap)
        admin.create_topic("single", partitions=3, replicas=1)
        admin.create_topic("double", partitions=2, replicas=2)
        admin.create_topic("strict", partitions=3, replicas=3, configs={"min.insync.replicas": "3"})
        producer = Producer({"bootstrap.servers": up.bootstrap})
        for topic, count in (("single", 3), ("double", 2), ("strict", 3)):
            for index in range(30):
                producer.produce(topic, f"message {index}", partition=index % count)
        producer.flush()
        yield up


@pytest.fixture(scope="module")
def url(three: ClusterProcess) -> Iterator[str]:
    with serve_in_thread(three.bootstrap) as served:
        yield served.url


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(TIMEOUT_MS)
    yield context.new_page()
    context.close()


def replicas(up: ClusterProcess, topic: str) -> list[tuple[int, ...]]:
    with Cluster(up.bootstrap) as cluster:
        return [each.replicas for each in cluster.partitions_of(topic)]


def test_a_partition_is_moved_to_the_brokers_that_were_typed(reader: Reader, three: ClusterProcess) -> None:
    (before,) = replicas(three, "single")[0]
    after = before % 3 + 1
    page = reader.open("/ui/topics/single/partitions")
    dialog = reader.dialog("Move partition 0")
    field = dialog.get_by_label("Replicas on brokers")
    expect(field).to_have_value(str(before))
    field.fill("9")
    dialog.get_by_role("button", name="Move", exact=True).click()
    expect(dialog.get_by_role("alert")).to_have_text("single-0: there is no broker 9, only 1, 2, 3")
    field.fill("one")
    dialog.get_by_role("button", name="Move", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("write the ids of brokers")
    assert replicas(three, "single")[0] == (before,)
    field.fill(str(after))
    dialog.get_by_role("button", name="Move", exact=True).click()
    expect(page).to_have_url(re.compile(r"/ui/moves\?of=1$"))
    expect(page.locator("#moves")).to_contain_text("1 of 1 move complete")
    expect(page.locator("#moves")).to_contain_text("No partition is being moved")
    assert replicas(three, "single")[0] == (after,)
    reader.forgive(400)


def test_a_slow_move_is_shown_with_its_progress_and_cancelled(reader: Reader, three: ClusterProcess) -> None:
    """Replication is throttled to a kilobyte per second, so that the move cannot end meanwhile."""
    admin = Admin(three.bootstrap)
    for broker in (1, 2, 3):
        rates = {f"{role}.replication.throttled.rate": "1000" for role in ("leader", "follower")}
        admin.alter_broker_configs(broker, sets=rates)
    throttled = {f"{role}.replication.throttled.replicas": "*" for role in ("leader", "follower")}
    admin.create_topic("slow", partitions=1, replicas=1, configs=throttled)
    producer = Producer({"bootstrap.servers": three.bootstrap})
    for _ in range(8):
        producer.produce("slow", os.urandom(900_000))
        producer.flush()
    (before,) = replicas(three, "slow")[0]
    page = reader.open("/ui/topics/slow/partitions")
    dialog = reader.dialog("Move partition 0")
    dialog.get_by_label("Replicas on brokers").fill(str(before % 3 + 1))
    dialog.get_by_role("button", name="Move", exact=True).click()
    row = page.locator("#moves tr", has_text="slow 0")
    expect(row).to_contain_text(re.compile(r"[0-9]+ %.* of 6.9 MiB"))
    expect(page.locator("#moves")).to_contain_text("0 of 1 move complete")
    page.get_by_role("button", name="Cancel the move of slow-0").click()
    page.get_by_role("button", name="Cancel the move", exact=True).click()
    expect(page.locator("#moves")).to_contain_text("No partition is being moved")
    expect(page.locator("#moves")).not_to_contain_text("complete")
    assert replicas(three, "slow")[0] == (before,)
    admin.delete_topic("slow")
    for broker in (1, 2, 3):
        admin.alter_broker_configs(broker, sets={}, unsets=list(rates))


def test_a_broker_is_drained_as_the_plan_says_after_its_name_was_typed(
    reader: Reader, three: ClusterProcess
) -> None:
    admin = Admin(three.bootstrap)
    admin.delete_topic("strict")  # a topic with as many replicas as brokers: the page says so
    page = reader.open("/ui/brokers/2")
    page.get_by_role("link", name="Drain").click()
    begin = page.get_by_role("button", name="Move these replicas")
    expect(begin).to_be_disabled()
    plan = {
        each.locator("th").inner_text(): each.locator("td").nth(1).inner_text()
        for each in page.locator("table tbody tr").all()
    }
    assert plan
    assert not any("2" in brokers for brokers in plan.values())
    page.get_by_role("textbox").fill("broker 2")
    begin.click()
    expect(page.locator("#moves")).to_contain_text(f"{len(plan)} of {len(plan)}")
    for topic in ("single", "double"):
        for index, found in enumerate(replicas(three, topic)):
            assert 2 not in found
            assert plan.get(f"{topic} {index}", ", ".join(map(str, found))) == ", ".join(map(str, found))
    reader.open("/ui/brokers/2/drain")
    expect(page.locator(".empty")).to_contain_text("Broker 2 has no replicas")
    admin.create_topic("strict", partitions=3, replicas=3, configs={"min.insync.replicas": "3"})


def test_what_cannot_be_drained_is_said_on_the_page(reader: Reader) -> None:
    page = reader.open("/ui/brokers/1/drain")
    expect(page.locator(".finding")).to_contain_text("strict-0 has 3 replicas")
    expect(page.locator(".finding code")).to_contain_text("headrace cluster reassign --topic strict")


def test_after_the_death_of_a_broker_the_worst_comes_first_and_nothing_is_shown_as_zero(
    reader: Reader, three: ClusterProcess
) -> None:
    victim = 3
    offline = [index for index, found in enumerate(replicas(three, "single")) if found == (victim,)]
    lonely = offline[0]
    pid = _pid(three, victim)
    os.kill(pid, signal.SIGSTOP)  # not killed: it would be started again
    try:
        wait_until(lambda: _states(three)[victim] == "down", "the broker is gone")
        page = reader.open("/ui/")
        names = page.locator("#care tbody th").all_inner_texts()
        assert names[0] == f"single {lonely}"
        assert [each.split()[0] for each in names if each.startswith("strict")] == ["strict"] * 3
        assert names.index("strict 0") < min(
            (at for at, each in enumerate(names) if each.startswith("double")), default=len(names)
        )
        reader.open("/ui/topics")
        expect(page.locator("#topics tbody tr").first).to_contain_text("single")
        expect(page.locator("#topics tbody tr").first.locator("td.num").nth(2)).to_have_text(UNKNOWN)
        reader.open("/ui/topics/single")
        finding = page.locator("#wrong .finding").first
        expect(finding).to_contain_text(f"on broker {victim}, which is not registered")
        expect(finding).to_contain_text(f"Start broker {victim} again")
        expect(page.locator("#messages details")).not_to_have_count(0)
        shown = set(page.locator("#messages .partition").all_inner_texts())
        assert not any(each.endswith(str(lonely)) for each in shown)
        expect(page.locator("#figures")).to_contain_text(UNKNOWN)
        _check_what_cannot_be_read(reader, offline)
        for path in ("partitions", "producers", f"producers?partition={lonely}", "groups", "settings"):
            reader.open(f"/ui/topics/single/{path}")
            expect(page.locator("#wrong .finding").first).to_be_visible()
    finally:
        os.kill(pid, signal.SIGCONT)


def _check_what_cannot_be_read(reader: Reader, offline: list[int]) -> None:
    """Offline partitions are not shown as in sync or as empty, and searches say that they are missing."""
    page = reader.open("/ui/topics/single/partitions")
    expect(page.locator("#partitions tbody tr").first.locator(".replica.lacks")).to_have_count(1)
    under_replicated = page.locator("#figures div", has_text="Under-replicated")
    expect(under_replicated.locator("dd")).to_have_text(str(len(offline)))
    reader.open(f"/ui/topics/single?partition={offline[0]}")
    expect(page.locator("#nothing")).to_contain_text("No partition can be read")
    answer = page.request.get(f"{reader.url}/api/v1/topics/single/messages")
    assert answer.json()["offline"] == offline
    assert len(answer.json()["messages"]) == 30 - 10 * len(offline)


def _states(up: ClusterProcess) -> dict[int, str]:
    with Cluster(up.bootstrap) as cluster:
        return {each.id: each.state for each in cluster.status().brokers}


def _pid(up: ClusterProcess, broker: int) -> int:
    with Cluster(up.bootstrap) as cluster:
        found = {each.id: each.pid for each in cluster.status().brokers}[broker]
    assert found is not None
    return found
