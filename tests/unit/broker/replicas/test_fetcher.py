"""Fetchers: what a follower requests of its leader, and what the responses do to its log."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.broker.image import ClusterImage
from headrace.broker.peers.peer import Peer
from headrace.broker.replicas.fetcher import Fetchers, FollowerContext
from headrace.broker.replicas.partition import Partition
from headrace.broker.settings.config import BrokerConfig
from headrace.protocol.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.peers import PeerGone
from headrace.protocol.schema.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from headrace.protocol.schema.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.replication.rate import Rate
from support.records import make_batch
from unit.broker.replica_samples import FOLLOWED, HERE, THERE, TOPIC_ID, change, make_partition

BROKER_EPOCH = 41


class FakeLeader:
    """Answers requests with the responses of a script; at its end the connection is over."""

    def __init__(self, *responses: Message) -> None:
        self.is_open = True
        self.requests: list[Any] = []
        self.is_asked = asyncio.Event()  # once more than there are responses
        self._responses = list(responses)

    async def ask(self, request: Message, _versions: range, *, timeout_s: float) -> Any:
        assert timeout_s > 0
        self.requests.append(request)
        if not self._responses:
            self.is_asked.set()
            await asyncio.Event().wait()
        return self._responses.pop(0)

    def close(self) -> None:
        self.is_open = False


def answer(**partition: Any) -> FetchResponse:
    """Return a response about partition t-0, in fetch session 9."""
    data = {"partition_index": 0, "error_code": 0, "high_watermark": 0, "log_start_offset": 0, **partition}
    data.setdefault("aborted_transactions", None)
    data.setdefault("records", b"")
    topic = FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[PartitionData(**data)])
    return FetchResponse(error_code=0, session_id=9, responses=[topic])


def offset(value: int) -> ListOffsetsResponse:
    found = ListOffsetsPartitionResponse(partition_index=0, error_code=0, offset=value)
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[found])])


@pytest.fixture
def follower(tmp_path: Path) -> Iterator[Partition]:
    partition = make_partition(tmp_path, FOLLOWED)
    yield partition
    partition.log.release()


def follow(partition: Partition, *leaders: FakeLeader | PeerGone) -> list[int]:
    """Fetch from one leader after another, until the last has no more responses.

    Return the log end offset at each truncation that was noted.
    """
    truncations: list[int] = []
    connections = list(leaders)

    async def connect_to(broker_id: int) -> Peer:
        assert broker_id == THERE
        leader = connections.pop(0)
        if isinstance(leader, PeerGone):
            raise leader
        return cast("Peer", leader)

    async def note_truncation(truncated: Partition) -> None:
        truncations.append(truncated.log.log_end_offset)

    async def fetch() -> None:
        fetchers = Fetchers(
            FollowerContext(
                HERE,
                ClusterImage("c"),
                lambda: BrokerConfig.of({"broker.id": str(HERE)}),
                lambda: BROKER_EPOCH,
                connect_to,
                note_truncation,
                Rate(1),
            )
        )
        fetchers.follow(partition)
        last = leaders[-1]
        assert isinstance(last, FakeLeader)
        await last.is_asked.wait()
        fetchers.stop()

    asyncio.run(fetch())
    return truncations


def test_a_follower_fetches_from_its_log_end_as_a_replica_in_its_epochs(follower: Partition) -> None:
    leader = FakeLeader()

    follow(follower, leader)

    (request,) = leader.requests
    assert isinstance(request, FetchRequest)
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (HERE, BROKER_EPOCH)
    (wanted,) = request.topics[0].partitions
    assert request.topics[0].topic_id == TOPIC_ID
    assert (wanted.fetch_offset, wanted.current_leader_epoch, wanted.last_fetched_epoch) == (0, 3, -1)


def test_what_the_leader_sends_is_appended_and_the_session_goes_on(follower: Partition) -> None:
    records = bytes(make_batch([b"a", b"b"], base_offset=0, leader_epoch=3))
    leader = FakeLeader(answer(records=records, high_watermark=1), answer(high_watermark=2))

    follow(follower, leader)

    assert follower.log.log_end_offset == 2
    assert follower.high_watermark == 2
    first, second, third = leader.requests
    assert (first.session_id, second.session_id, third.session_id) == (0, 9, 9)
    assert second.topics[0].partitions[0].fetch_offset == 2
    assert not third.topics  # nothing is new about the partition


def test_a_log_that_diverges_is_truncated_and_fetched_again(follower: Partition) -> None:
    for number in range(3):
        batch = make_batch([b"x"], base_offset=number, leader_epoch=1)
        follower.append_as_follower(batch, high_watermark=0, log_start_offset=0)
    leader = FakeLeader(answer(diverging_epoch=EpochEndOffset(epoch=1, end_offset=2)))

    assert follow(follower, leader) == [2]

    assert leader.requests[1].topics[0].partitions[0].fetch_offset == 2


def test_a_follower_that_is_behind_the_leaders_log_start_restarts_there(follower: Partition) -> None:
    leader = FakeLeader(answer(error_code=ErrorCode.OFFSET_OUT_OF_RANGE), offset(90), offset(70))

    assert follow(follower, leader) == [70]

    assert follower.log.log_start_offset == 70
    _, latest, earliest, again = leader.requests
    assert isinstance(latest, ListOffsetsRequest)
    assert (latest.replica_id, earliest.replica_id) == (-2, HERE)
    assert again.topics[0].partitions[0].fetch_offset == 70


def test_records_of_an_impossible_epoch_are_fetched_again(
    follower: Partition, caplog: pytest.LogCaptureFixture
) -> None:
    for number, epoch in enumerate([1, 3]):
        batch = make_batch([b"x"], base_offset=number, leader_epoch=epoch)
        follower.append_as_follower(batch, high_watermark=0, log_start_offset=0)
    follower.log.epochs.assign(99, 1)  # as a damaged checkpoint says
    refused = answer(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    leader = FakeLeader(refused, offset(2), offset(0))

    assert follow(follower, leader) == [1]

    (wanted,) = leader.requests[3].topics[0].partitions
    assert (wanted.fetch_offset, wanted.last_fetched_epoch) == (1, 1)
    (warning,) = [each for each in caplog.records if each.levelname == "WARNING"]
    assert "names leader epoch 99 from offset 1 on, the current one is 3" in warning.message


def test_the_reason_of_repeated_refusals_is_logged_once(
    follower: Partition, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.broker.replicas.fetcher._BACKOFF_S", 0.0)
    wrong = bytes(make_batch([b"a"], base_offset=0, leader_epoch=9))
    refusals = [answer(error_code=ErrorCode.KAFKA_STORAGE_ERROR) for _ in range(12)]

    follow(follower, FakeLeader(*refusals))
    follow(follower, FakeLeader(*[answer(records=wrong) for _ in range(3)]))

    warnings = [each.message for each in caplog.records if each.levelname == "WARNING"]
    refused, not_appended = warnings
    assert refused == "t-0 cannot be fetched from broker 2: it answers error KAFKA_STORAGE_ERROR"
    assert "could not be appended: a batch at offset 0 names leader epoch 9" in not_appended


def test_a_connection_that_cannot_be_made_is_tried_again(follower: Partition) -> None:
    leader = FakeLeader()

    follow(follower, PeerGone("refused"), leader)

    assert len(leader.requests) == 1


def test_a_response_of_a_former_leader_is_ignored(follower: Partition) -> None:
    class Replaced(FakeLeader):
        async def ask(self, request: Message, versions: range, *, timeout_s: float) -> Any:
            change(follower, FOLLOWED, leader_epoch=4)
            return await super().ask(request, versions, timeout_s=timeout_s)

    records = bytes(make_batch([b"a"], base_offset=0, leader_epoch=3))

    follow(follower, Replaced(answer(records=records, high_watermark=1)))

    assert follower.log.log_end_offset == 0
