"""Plans of moves, as Kafka's tool reads them."""

import json

import pytest

from headrace.client.cluster.moves import Move, Reassignment, plan_of, read_plan
from headrace.client.cluster.throttle import throttled_replicas
from headrace.client.errors import ClientError


def test_a_plan_is_read_as_it_is_written() -> None:
    moves = [
        Move(topic="orders", partition=0, replicas=(1, 2)),
        Move(topic="payments", partition=3, replicas=(3,)),
    ]
    assert read_plan(json.dumps(plan_of(moves)), "plan.json") == moves


def test_the_target_of_a_move_is_what_stays() -> None:
    moving = Reassignment(topic="orders", partition=0, replicas=(3, 1, 2), adding=(3,), removing=(2,))
    assert moving.target == (3, 1)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "plan.json is not JSON"),
        ("[]", 'plan.json: expected {"version": 1, "partitions"'),
        ('{"version": 2, "partitions": []}', "plan.json: expected"),
        ('{"version": 1, "partitions": []}', "there are no partitions in it"),
        ('{"version": 1, "partitions": [{"topic": "a", "partition": 0}]}', "is no partition"),
        ('{"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": []}]}', "is no partition"),
        (
            '{"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": ["1"]}]}',
            "is no partition",
        ),
        (json.dumps(plan_of([Move(topic="a", partition=0, replicas=(1,))] * 2)), "a-0 is named twice"),
        (
            '{"version": 1, "partitions": [{"topic":"a", "partition":0, "replicas":[1], "log_dirs": [""]}]}',
            "log_dirs can only be 'any'",
        ),
    ],
)
def test_a_plan_that_is_none_is_refused_in_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ClientError) as refused:
        read_plan(text, "plan.json")
    assert sentence in str(refused.value)


def test_replicas_that_are_there_send_and_those_that_come_fetch_at_the_rate() -> None:
    moves = [
        Move(topic="orders", partition=0, replicas=(2, 3)),
        Move(topic="orders", partition=1, replicas=(3, 1)),
        Move(topic="payments", partition=0, replicas=(2, 1)),
    ]
    before = {
        moves[0].topic_partition: (1, 2),
        moves[1].topic_partition: (1,),
        moves[2].topic_partition: (1, 2),
    }
    assert throttled_replicas(moves, before) == {
        "orders": {
            "leader.replication.throttled.replicas": "0:1,0:2,1:1",
            "follower.replication.throttled.replicas": "0:3,1:3",
        }
    }
