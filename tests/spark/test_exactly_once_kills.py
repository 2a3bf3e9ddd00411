"""Spark drivers that copy a topic exactly once, each killed with all its processes while it writes."""

import random
from pathlib import Path
from typing import Final

import pytest

from headrace.testing import Cluster
from spark.killed_drivers import Drivers
from wire.confluent import make_topic, read, send

KILLS: Final = 4
RECORDS: Final = 8_000
PARTITIONS: Final = 3


@pytest.mark.long
def test_drivers_killed_in_turn_leave_every_record_once(tmp_path: Path) -> None:
    with Cluster(brokers=3) as cluster:
        bootstrap = cluster.bootstrap
        make_topic(bootstrap, "source", partitions=PARTITIONS)
        make_topic(bootstrap, "target", partitions=PARTITIONS)
        records = [{"key": b"%d" % n, "value": b"%d" % n} for n in range(RECORDS)]
        assert not [error for error, _ in send(bootstrap, "source", records) if error]
        drivers = Drivers(
            module="spark.once_driver", root=tmp_path, bootstrap=bootstrap, checkpoint=tmp_path / "checkpoint"
        )
        drivers.kill_in_turn(KILLS, random.Random(5), most_batches=3)
        found = read(bootstrap, "target", partitions=range(PARTITIONS), isolation_level="read_committed")

    assert sorted(int(each.value()) for each in found) == list(range(RECORDS))
