"""Groups whose members and whose broker are killed at random while records come in: nothing is lost.

The seed is in the name of the test, with the number of kills and starts: the same one kills the same workers.
"""

from pathlib import Path
from typing import Final

import pytest

from wire.group_stories.brokers import quick_broker
from wire.group_stories.fire import nothing_is_lost_under_fire
from wire.group_stories.kinds import Kind

pytestmark = pytest.mark.extended

HASTY: Final = {"assignor": "range", "session_timeout_ms": 3000}
CLASSIC: Final = [Kind(client, HASTY) for client in ("confluent", "kafka-python", "aiokafka")]
CONSUMER: Final = [Kind("confluent", {"group_protocol": "consumer"})]


@pytest.mark.parametrize(("seed", "steps"), [(11, 5), pytest.param(11, 14, marks=pytest.mark.long)])
def test_three_clients_in_one_classic_group_read_every_record(tmp_path: Path, seed: int, steps: int) -> None:
    with quick_broker(tmp_path / "broker") as broker:
        nothing_is_lost_under_fire(broker, CLASSIC, tmp_path, seed, steps)


@pytest.mark.parametrize(("seed", "steps"), [(12, 5), pytest.param(12, 14, marks=pytest.mark.long)])
def test_a_group_of_the_new_protocol_reads_every_record(tmp_path: Path, seed: int, steps: int) -> None:
    with quick_broker(tmp_path / "broker", group_consumer_session_timeout_ms="3000") as broker:
        nothing_is_lost_under_fire(broker, CONSUMER, tmp_path, seed, steps)
