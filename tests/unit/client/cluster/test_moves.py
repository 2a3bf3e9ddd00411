"""Plans of moves, as Kafka's tool reads them."""

import json

import pytest

from headrace.client.cluster.moves import Move, Reassignment, plan_of, read_plan
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
