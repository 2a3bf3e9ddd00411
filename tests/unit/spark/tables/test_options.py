from pathlib import Path

import pytest

from headrace.spark.batch import Batch
from headrace.spark.errors import InvalidOption
from headrace.spark.tables.options import DeltaOptions, IcebergOptions, identified_batch


def test_a_delta_table_needs_a_path_and_has_defaults_for_the_rest() -> None:
    options = DeltaOptions.of({"path": "/data/trucks", "checkpointLocation": "/elsewhere"})

    assert options == DeltaOptions(path="/data/trucks")
    with pytest.raises(InvalidOption, match="option 'path': missing; expected a directory"):
        DeltaOptions.of({})


def test_a_path_is_absolute_and_a_url_stays_as_it_is() -> None:
    assert DeltaOptions.of({"path": "some/table"}).path == str(Path.cwd() / "some" / "table")
    assert DeltaOptions.of({"path": "s3://bucket/table"}).path == "s3://bucket/table"


def test_storage_options_are_handed_on_and_names_may_have_any_case() -> None:
    options = DeltaOptions.of(
        {"PATH": "/t", "storage.aws_region": "north", "PARTITIONBY": " a, b ", "compactevery": "0"}
    )

    assert options.storage == {"aws_region": "north"}
    assert (options.partition_by, options.compact_every) == (("a", "b"), 0)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("compactEvery", "-1", "'-1' is not an integer of at least 0"),
        ("targetFileBytes", "0", "'0' is not an integer of at least 1"),
        ("targetFileBytes", "128MB", "'128MB' is not an integer"),
        ("partitionBy", "a,,b", "'a,,b' is not a list of different columns"),
        ("partitionBy", "a,a", "'a,a' is not a list of different columns"),
        (
            "nonsense",
            "1",
            "unknown; expected partitionBy, evolve, compactEvery, targetFileBytes, txnAppId, txnVersion",
        ),
    ],
)
def test_an_option_that_makes_no_sense_is_named(name: str, value: str, sentence: str) -> None:
    with pytest.raises(InvalidOption) as refusal:
        DeltaOptions.of({"path": "/t", name: value})

    assert str(refusal.value).startswith(f"option {name!r}: {sentence}")


def test_an_iceberg_table_has_a_namespace_and_a_catalog() -> None:
    options = IcebergOptions.of({"table": "a.b.c", "catalog.type": "sql", "catalog.name": "lake"})

    assert (options.table, options.catalog_name, options.catalog) == ("a.b.c", "lake", {"type": "sql"})
    for wrong in ("", "trucks", ".trucks", "trucks."):
        with pytest.raises(InvalidOption, match="is not the name of a table; expected namespace"):
            IcebergOptions.of({"table": wrong})


def test_a_url_with_one_slash_is_never_taken_for_a_local_directory() -> None:
    assert DeltaOptions.of({"path": "file:/data/table"}).path == "file:///data/table"
    with pytest.raises(InvalidOption, match="s3a://bucket/table"):
        DeltaOptions.of({"path": "s3a:/bucket/table"})


def test_a_write_that_may_be_repeated_has_an_application_and_a_version() -> None:
    assert identified_batch({"path": "/t"}) is None
    given = {"path": "/t", "txnappid": "job", "txnversion": "7"}  # as Spark passes them
    assert identified_batch(given) == Batch("job", 7)
    DeltaOptions.of(given)
    IcebergOptions.of({"table": "a.b", "txnAppId": "job", "txnVersion": "7"})


@pytest.mark.parametrize(
    "given", [{"txnAppId": "job"}, {"txnVersion": "1"}, {"txnAppId": " ", "txnVersion": "1"}]
)
def test_half_an_identity_of_a_write_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(InvalidOption, match="txnAppId and txnVersion identify a write together"):
        identified_batch(given)
