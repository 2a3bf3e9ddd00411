"""The rules of an upsert, and what is refused."""

import datetime as dt
from typing import Any

import pytest
from pyspark.sql.types import ArrayType, StringType, StructType

from headrace.spark.errors import InvalidOption
from headrace.spark.merge.events import stored_schema
from headrace.spark.merge.tombstones import tombstone_schema
from headrace.spark.merge.upsert import Upsert

EVENTS = (
    StructType()
    .add("id", "long")
    .add("name", "string")
    .add("op", "string")
    .add("lsn", "long")
    .add("pos", "integer")
    .add("tags", ArrayType(StringType()))
    .add("_record", StructType().add("topic", "string").add("partition", "integer").add("offset", "long"))
)


def rules(**given: Any) -> Upsert:
    return Upsert.of(**({"keys": "id", "sequence_by": "lsn"} | given))


def columns(upsert: Upsert) -> str:
    return stored_schema(EVENTS, upsert).simpleString().removeprefix("struct<").removesuffix(">")


def test_the_table_has_all_columns_but_the_origin_of_a_record() -> None:
    assert columns(rules()) == "id:bigint,name:string,op:string,lsn:bigint,pos:int,tags:array<string>"


def test_columns_are_selected() -> None:
    assert columns(rules(except_columns=["op", "tags", "pos"])) == "id:bigint,name:string,lsn:bigint"
    assert columns(rules(columns=["id", "lsn"])) == "id:bigint,lsn:bigint"


def test_history_adds_the_sequences_between_which_a_row_is_valid() -> None:
    assert columns(rules(columns=["id", "name"], history=True)) == (
        "id:bigint,name:string,__START_AT:bigint,__END_AT:bigint"
    )
    both = rules(columns=["id"], sequence_by=["lsn", "pos"], history=True)
    assert columns(both).endswith("__START_AT:struct<lsn:bigint,pos:int>,__END_AT:struct<lsn:bigint,pos:int>")


def test_a_tombstone_has_the_key_the_sequence_and_the_time() -> None:
    assert tombstone_schema(EVENTS, rules()).simpleString() == (
        "struct<id:bigint,__sequence:bigint,__deleted_at:timestamp>"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"keys": []}, "'keys': missing"),
        ({"keys": ["id", "id"]}, "'keys': .*different columns"),
        ({"keys": "number"}, "'keys': there is no column 'number'; expected one of id, name"),
        ({"keys": "tags"}, r"'keys': column 'tags' is array<string>: cast it"),
        ({"sequence_by": []}, "'sequence_by': missing"),
        ({"sequence_by": "id"}, "'sequence_by': column 'id' is also one of the keys"),
        ({"sequence_by": "tags"}, "'sequence_by': column 'tags' is array<string>: use its fields"),
        ({"except_columns": ["lsn"]}, "'except_columns': column 'lsn' has to be in the table"),
        ({"columns": ["id"]}, "'columns': column 'lsn' has to be in the table"),
        ({"columns": ["id"], "except_columns": ["op"]}, "either columns or except_columns"),
        ({"except_columns": ["opp"]}, "'except_columns': there is no column 'opp'"),
        ({"tombstones_for": "soon"}, "'tombstones_for': 'soon' is not a duration"),
    ],
)
def test_what_is_not_valid_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        stored_schema(EVENTS, rules(**given))


def test_durations() -> None:
    assert rules().tombstones_for == dt.timedelta(days=2)
    assert rules(tombstones_for="90 Minutes").tombstones_for == dt.timedelta(minutes=90)
    assert rules(tombstones_for="1 week").tombstones_for == dt.timedelta(weeks=1)
