"""Topics that are the cluster's own: nobody deletes them by mistake."""

from collections.abc import Iterator

import pytest

from cli.command import Command
from support.process import UpProcess


@pytest.fixture(scope="module")
def headrace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """A broker of its own: others may need its schemas."""
    with UpProcess(tmp_path_factory.mktemp("internal")) as up:
        command = Command(up.bootstrap)
        command.ok("produce", "read", "x")
        command.ok("consume", "read", "--group", "billing", "--exit-at-end")
        yield command


@pytest.fixture(autouse=True)
def topics(headrace: Command) -> None:
    """One that is anybody's and one that is not; an earlier test may have deleted them."""
    for name in {"orders", "_schemas"} - names(headrace):
        headrace.ok("topic", "create", name, "--config", "cleanup.policy=compact")


@pytest.mark.parametrize("verb", ["delete", "delete-records --all"])
@pytest.mark.parametrize(
    ("name", "owner"), [("_schemas", "the schema registry"), ("__consumer_offsets", "the cluster")]
)
def test_what_is_the_clusters_own_has_to_be_meant(
    headrace: Command, verb: str, name: str, owner: str
) -> None:
    refused = headrace("topic", *verb.split(), name, "--yes")
    sentence = f"{name} is an internal topic of {owner}: give --internal to allow it"
    assert (refused.status, refused.complaint) == (1, sentence)
    assert name in names(headrace)


def test_of_several_topics_none_is_deleted_if_one_has_to_be_meant(headrace: Command) -> None:
    assert headrace("topic", "delete", "orders", "_schemas", "--yes").status == 1
    assert {"orders", "_schemas"} <= names(headrace)
    headrace.ok("topic", "delete", "orders", "_schemas", "--yes", "--internal")
    assert not {"orders", "_schemas"} & names(headrace)


def test_who_writes_to_a_topic_of_the_clusters_is_told_whose_it_is(headrace: Command) -> None:
    refused = headrace("produce", "__consumer_offsets", "x")
    assert (
        refused.complaint
        == "__consumer_offsets is an internal topic of the cluster: only brokers write to it"
    )


def names(headrace: Command) -> set[str]:
    return {each["name"] for each in headrace.ok("topic", "list", "--json").json}
