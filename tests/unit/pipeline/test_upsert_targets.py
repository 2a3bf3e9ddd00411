"""Tables as targets of upserts, as they are declared."""

import pytest

from headrace.pipeline import Delta, Iceberg, Pipeline, PipelineError
from headrace.spark.merge.upsert import Upsert

TABLES = [Delta("tables/customers"), Iceberg("shop.customers", {"password": "secret"})]


@pytest.mark.parametrize("table", TABLES, ids=["Delta", "Iceberg"])
def test_an_upsert_is_another_target_with_the_same_table(table: Delta | Iceberg) -> None:
    target = table.upsert(keys=["id"], sequence_by="lsn", deletes="op = 'd'")

    assert table.upserts is None
    assert target.upserts == Upsert(keys=("id",), sequence_by=("lsn",))
    assert target.label == table.label
    assert target.format("") == table.format("")
    assert "secret" not in repr(target)


@pytest.mark.parametrize("table", TABLES, ids=["Delta", "Iceberg"])
def test_changed_rows_can_be_merged_but_not_a_whole_result(table: Delta | Iceberg) -> None:
    target = table.upsert(keys="id", sequence_by="lsn")

    Pipeline("shop").sink(target, mode="update")
    with pytest.raises(PipelineError, match="supports mode append or update, not complete"):
        Pipeline("shop").sink(target, mode="complete")
    with pytest.raises(PipelineError, match="supports mode append or complete, not update"):
        Pipeline("shop").sink(table, mode="update")


def test_invalid_rules_name_the_table() -> None:
    with pytest.raises(PipelineError, match="Delta table t: option 'keys': missing"):
        Delta("t").upsert(keys=[], sequence_by="lsn")
    with pytest.raises(PipelineError, match="upserts determine the number of files"):
        Delta("t", files=2).upsert(keys="id", sequence_by="lsn")
