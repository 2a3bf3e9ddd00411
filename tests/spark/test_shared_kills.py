"""Drivers of a pipeline with shared sinks, each killed with all its processes while it writes."""

import json
import random
from pathlib import Path
from typing import Final

import pytest
from deltalake import DeltaTable

from headrace.testing import Cluster
from spark.killed_drivers import Drivers
from wire.confluent import make_topic, read, send

KILLS: Final = 3
RECORDS: Final = 6_000
# A batch with deletions has two commits: its tombstones, and then the table.
SUICIDES: Final = ("after 0", "after 1", "before 1", "after 3")
BAD_EVERY: Final = 100


@pytest.mark.long
def test_drivers_killed_in_turn_leave_every_record_once_in_every_sink(tmp_path: Path) -> None:
    values = [b"bad" if n % BAD_EVERY == 0 else json.dumps({"number": n}).encode() for n in range(RECORDS)]
    good = [n for n in range(RECORDS) if n % BAD_EVERY]
    with Cluster(brokers=1) as cluster:
        bootstrap = cluster.bootstrap
        for topic in ("source", "target", "bad"):
            make_topic(bootstrap, topic, partitions=2)
        assert not [error for error, _ in send(bootstrap, "source", [{"value": v} for v in values]) if error]
        drivers = Drivers(
            module="spark.shared_driver",
            root=tmp_path,
            bootstrap=bootstrap,
            checkpoint=tmp_path / "state" / "kills" / "checkpoints" / "kills.numbers.shared",
        )
        drivers.kill_in_turn(KILLS, random.Random(7), most_batches=2, suicides=SUICIDES)
        copied, bad = (
            read(bootstrap, topic, partitions=range(2), isolation_level="read_committed")
            for topic in ("target", "bad")
        )

    assert sorted(json.loads(each.value())["number"] for each in copied) == good
    assert [each.value() for each in bad] == [b"bad"] * (RECORDS // BAD_EVERY)
    table = DeltaTable(str(tmp_path / "table")).to_pyarrow_table(columns=["number"])
    assert sorted(table.column("number").to_pylist()) == good
    # Of each digit the last number remains, unless that deletes the row.
    last = {number % 10: number for number in good}
    newest = DeltaTable(str(tmp_path / "newest")).to_pyarrow_table().to_pylist()
    assert {row["digit"]: row["number"] for row in newest} == {d: n for d, n in last.items() if n % 7}
