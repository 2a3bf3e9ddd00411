"""No request costs a broker much more than it takes to send it: some shapes of every API, on a real broker.

`make amplification` measures all of them. HEADRACE_FUZZ_SEED=7 chooses others here.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from amplification.broker import MeasuredBroker
from amplification.limits import HOLD_S, excesses
from amplification.shapes import Filling, Shape, World, build, sample
from amplification.world import SETTINGS, make_world
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.delete_groups import DeleteGroupsRequest
from headrace.protocol.schema.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from headrace.protocol.schema.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.protocol.schema.find_coordinator import FindCoordinatorRequest
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.leave_group import LeaveGroupRequest, MemberIdentity
from headrace.protocol.schema.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic
from wire.raw import RawClient, frame_of

SEED: Final = int(os.environ.get("HEADRACE_FUZZ_SEED", "1"))
SHAPES: Final = 60
BYTES: Final = 40_000
ELEMENTS: Final = 20_000
MEBIBYTE: Final = 2**20


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredBroker]:
    with MeasuredBroker(tmp_path_factory.mktemp("measured"), SETTINGS) as process:
        yield process
        assert process.complaints() == []


@pytest.fixture(scope="module")
def world(broker: MeasuredBroker) -> World:
    return make_world(broker, topics=4, partitions=5)


def _removes_the_world(shape: Shape) -> bool:
    return shape.key == ApiKey.DELETE_TOPICS and shape.filling in {Filling.SAME, Filling.KNOWN}


def test_no_request_costs_much_more_than_it_takes_to_send_it(broker: MeasuredBroker, world: World) -> None:
    too_much = []
    for shape in sample(SHAPES, SEED):
        if not _removes_the_world(shape):
            cost = broker.cost_of(frame_of(build(shape, world, BYTES, ELEMENTS), shape.version))
            too_much += [f"{shape}: {excess}" for excess in excesses(shape.key, cost)]

    assert too_much == []


def test_names_of_groups_that_do_not_exist(broker: MeasuredBroker) -> None:
    """An error for each of 100,000 names: their tracebacks must not be kept."""
    before = broker.peak_rss_bytes
    request = DeleteGroupsRequest(groups_names=[f"{number:x}" for number in range(100_000)])

    cost = broker.cost_of(frame_of(request, 2))

    assert excesses(ApiKey.DELETE_GROUPS, cost) == []
    assert broker.peak_rss_bytes - before < 100 * MEBIBYTE


def test_members_that_do_not_exist_leave_a_few_at_a_time(broker: MeasuredBroker) -> None:
    request = LeaveGroupRequest(
        group_id="group", members=[MemberIdentity(member_id=f"{number:x}") for number in range(2_000)]
    )
    with RawClient(broker.bootstrap) as client:
        client.ask(FindCoordinatorRequest(key="group"), version=1)
        answer = client.ask(request, 4)

    assert answer.error_code == 0
    assert [each.member_id for each in answer.members] == [each.member_id for each in request.members]
    assert {each.error_code for each in answer.members} == {ErrorCode.UNKNOWN_MEMBER_ID}


def fetch_of(partitions: int, *, session_epoch: int) -> FetchRequest:
    """So many partitions that do not exist."""
    wanted = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1) for index in range(partitions)
    ]
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        session_id=0,
        session_epoch=session_epoch,
        topics=[FetchTopic(topic="nobody-has-this", partitions=wanted)],
    )


def test_a_fetch_of_100_000_unknown_partitions_lets_others_have_their_turn(broker: MeasuredBroker) -> None:
    cost = broker.cost_of(frame_of(fetch_of(100_000, session_epoch=-1), 12))

    assert cost.received_bytes > 3_000_000  # it is answered
    assert cost.hold_s < HOLD_S


def test_fetch_sessions_keep_nothing_of_partitions_that_do_not_exist(broker: MeasuredBroker) -> None:
    frame = frame_of(fetch_of(20_000, session_epoch=0), 12)
    broker.cost_of(frame)
    before = broker.rss_bytes

    for _ in range(8):  # each kept five megabytes
        broker.cost_of(frame)

    assert broker.rss_bytes - before < 20 * MEBIBYTE


def test_list_offsets_of_100_000_partitions_lets_others_have_their_turn(broker: MeasuredBroker) -> None:
    wanted = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(100_000)]
    topics = [ListOffsetsTopic(name="nobody-has-this", partitions=wanted)]

    cost = broker.cost_of(frame_of(ListOffsetsRequest(replica_id=-1, topics=topics), 6))

    assert cost.received_bytes > 1_000_000
    assert cost.hold_s < HOLD_S


def test_a_request_of_more_elements_than_any_client_needs_ends_its_connection(broker: MeasuredBroker) -> None:
    cost = broker.cost_of(frame_of(fetch_of(200_000, session_epoch=-1), 12))

    assert cost.received_bytes == 0
    assert "FetchRequest v12: partitions: the message has too many elements" in broker.log.read_text()


def test_one_metadata_request_creates_a_bounded_number_of_topics(tmp_path: Path) -> None:
    names = [f"new-{number:03}" for number in range(60)]
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
    with MeasuredBroker(tmp_path) as broker, RawClient(broker.bootstrap) as client:
        first = {topic.name: topic.error_code for topic in client.ask(request, 12).topics}
        second = {topic.name: topic.error_code for topic in client.ask(request, 12).topics}

    assert list(first.values()) == [0] * 50 + [5] * 10  # LEADER_NOT_AVAILABLE: the client asks again
    assert set(second.values()) == {0}


def test_thousands_of_small_requests_in_one_piece_let_others_have_their_turn(broker: MeasuredBroker) -> None:
    """Their answers are small, too, so it is not unread answers that stop the broker."""
    resource = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=["broker.id"])
    frame = frame_of(DescribeConfigsRequest(resources=[resource]), 4)

    cost = broker.cost_of(frame * 2000)

    assert cost.received_bytes > 40_000
    assert cost.hold_s < HOLD_S
