"""/api/v1: topics followed live, by server-sent events."""

import asyncio
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import requests

from headrace.client.records.one_by_one import END, Record
from headrace.gateway.rest.tails import BUFFERED, MAX_TAILS, TailBatch, Tails
from headrace.gateway.serving import serve_in_thread
from http_support.asking import WAIT_S, Asking, wait_until
from support.process import UpProcess


def test_what_is_written_arrives(gateway: Asking) -> None:
    topic = gateway.topic(partitions=2)
    gateway.write(topic, "before", partition=0)
    with gateway.tail(topic) as events:
        assert next(events).kind == "ready"
        gateway.write(topic, {"n": 1}, key="k", partition=1)
        event = next(events)
    assert event.kind == "message"
    assert (event.data["partition"], event.data["offset"]) == (1, 0)
    assert (event.data["key"], event.data["value"]) == ("k", {"n": 1})


def test_a_tail_begins_some_before_the_end_and_ends_after_some(gateway: Asking) -> None:
    topic = gateway.topic()
    gateway.write(topic, *"abcdef")
    with gateway.tail(topic, "last=4&limit=3") as events:
        assert [each.data["value"] for each in events if each.kind == "message"] == ["c", "d", "e"]


def test_whoever_comes_back_misses_nothing_and_gets_nothing_twice(gateway: Asking) -> None:
    topic = gateway.topic(partitions=3)
    wanted = [f"m{number}" for number in range(4000)]
    with gateway.tail(topic) as events:
        assert next(events).kind == "ready"
        gateway.write(topic, *wanted[:100])
        seen = list(islice(events, 60))
    gateway.write(topic, *wanted[100:])  # while nobody is there; more than a buffer holds

    with gateway.tail(topic, Last_Event_ID=seen[-1].id) as events:
        seen += islice((each for each in events if each.kind != "ready"), len(wanted) - 60)
    assert {each.kind for each in seen} == {"message"}
    assert sorted(each.data["value"] for each in seen) == sorted(wanted)


def test_whoever_follows_many_partitions_comes_back_by_the_last_id(gateway: Asking) -> None:
    topic = gateway.topic(partitions=40)
    for partition in range(40):
        gateway.write(topic, "old", partition=partition)
    with gateway.tail(topic) as events:
        assert next(events).kind == "ready"
        gateway.write(topic, "seen", partition=7)
        seen = next(events)
    gateway.write(topic, "new", partition=7)
    gateway.write(topic, "new", partition=39)

    with gateway.tail(topic, "limit=2", Last_Event_ID=seen.id) as events:
        found = {(each.data["partition"], each.data["value"]) for each in events if each.kind == "message"}
    assert found == {(7, "new"), (39, "new")}


def test_a_tail_shows_only_what_one_looks_for(gateway: Asking) -> None:
    topic = gateway.topic(partitions=2)
    with gateway.tail(topic, "text=tea&limit=1") as events:
        assert next(events).kind == "ready"
        gateway.write(topic, "coffee", key="a")
        gateway.write(topic, "milk", key="b")
        gateway.write(topic, "Tea", key="c")
        assert [each.data["value"] for each in events if each.kind == "message"] == ["Tea"]


def test_what_is_gone_when_one_comes_back_is_counted(gateway: Asking) -> None:
    topic = gateway.topic()
    gateway.write(topic, *"abcdef")
    gateway.delete(f"/api/v1/topics/{topic}/records", {"before": {"0": 4}})
    with gateway.tail(topic, "limit=2", Last_Event_ID="0:1") as events:
        found = [(each.kind, each.data.get("skipped", each.data.get("value"))) for each in events]
    assert found == [("ready", None), ("skipped", 3), ("message", "e"), ("message", "f")]


def test_a_topic_that_is_deleted_ends_its_tails_with_a_sentence(gateway: Asking) -> None:
    topic = gateway.topic()
    with gateway.tail(topic) as events:
        assert next(events).kind == "ready"
        gateway.delete(f"/api/v1/topics/{topic}")
        (last,) = events
    assert (last.kind, last.data) == ("error", {"error_code": 40401, "message": f"there is no topic {topic}"})


def test_there_are_so_many_tails_and_whoever_goes_makes_room(gateway: Asking) -> None:
    topic = gateway.topic()
    path = f"/api/v1/topics/{topic}/tail"
    with ExitStack() as open_ones:
        all_events = []  # kept, for whoever forgets a generator closes it
        refusals: list[dict[str, Any]] = []

        def is_full() -> bool:
            """Whether there is no room for another tail, which is taken if there is."""
            with requests.get(gateway.url + path, stream=True, timeout=30) as answer:
                if answer.status_code == requests.codes.too_many_requests:
                    refusals.append(answer.json())
                    return True
            all_events.append(open_ones.enter_context(gateway.tail(topic)))
            return next(all_events[-1]).kind != "ready"

        while not is_full():
            assert len(all_events) <= MAX_TAILS
        (refusal,) = refusals
        assert refusal["error_code"] == 42901
        assert f"{MAX_TAILS} tails are open" in refusal["message"]
        assert gateway.get("/healthz") == {"status": "ok"}  # other requests have threads left
        assert gateway.write(topic, "x") == [(0, 0)]

    with gateway.tail(topic, "last=1&limit=1") as events:  # as soon as those who have gone are noticed
        assert [each.data["value"] for each in events if each.kind == "message"] == ["x"]


def test_a_tail_says_that_the_cluster_is_away_and_that_it_is_back(tmp_path: Path) -> None:
    with UpProcess(tmp_path) as broker, serve_in_thread(broker.bootstrap) as served:
        gateway = Asking(served.url)
        topic = gateway.topic()
        with gateway.tail(topic) as events:
            assert next(events).kind == "ready"
            broker.kill()
            away = next(events)
            broker.start()
            back = next(events)
            gateway.write(topic, "again")
            assert next(events).data["value"] == "again"
        gateway.close()
    assert (away.kind, away.data["reachable"], back.kind, back.data) == (
        *("status", False),
        *("status", {"reachable": True, "message": ""}),
    )
    assert "no broker answers at" in away.data["message"]


def test_a_position_that_is_none_is_refused(gateway: Asking) -> None:
    topic = gateway.topic()
    for given in ("x", "0:1,0:2", "0:-1", "0:99999999999999999999"):
        assert gateway.refused("GET", f"/api/v1/topics/{topic}/tail", Last_Event_ID=given)[0] == 400
    assert gateway.refused("GET", f"/api/v1/topics/{topic}/tail?partition=3")[:2] == (404, 40402)


def test_a_client_that_is_too_slow_is_told_how_many_it_has_missed(gateway: Asking, broker: UpProcess) -> None:
    topic = gateway.topic()
    seen: list[int] = []

    def noted(record: Record) -> bool:
        seen.append(record.offset)
        return True

    async def follow() -> TailBatch | None:
        tail = await Tails(lambda: broker.bootstrap).open(topic, END, fits=noted)
        await tail.take(WAIT_S)  # where it begins
        await asyncio.to_thread(gateway.write, topic, *range(BUFFERED + 500), encoding="json")
        await asyncio.to_thread(wait_until, lambda: len(seen) == BUFFERED + 500, "not all has come")
        taken = await tail.take(WAIT_S)
        tail.stop()
        return taken

    taken = asyncio.run(follow())
    assert taken is not None
    assert taken.skipped == 500
    assert [record.offset for record in taken.records] == list(range(500, BUFFERED + 500))
