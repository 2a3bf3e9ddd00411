from pathlib import Path

import pytest

from headrace.protocol.batch import BatchHeader, read_batch
from headrace.protocol.ids import ProducerId
from headrace.storage.config import LogConfig
from headrace.storage.errors import OutOfOrderSequence, TooManyProducers
from headrace.storage.files import names_in
from headrace.storage.producers.producers import GUARANTEED, Producers, ProducerSpace, snapshots_in
from headrace.storage.producers.snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from headrace.storage.producers.state import EndMarker, ProducerState
from support.records import TIMESTAMP, make_batch, make_marker

ABORT = EndMarker(commit=False, coordinator_epoch=2)


def data(
    producer_id: int, offset: int, sequence: int = 0, *, count: int = 1, transactional: bool = False
) -> BatchHeader:
    return read_batch(
        make_batch(
            count,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            base_offset=offset,
            transactional=transactional,
        )
    )


def marker(producer_id: int, offset: int) -> BatchHeader:
    return read_batch(make_marker(producer_id, commit=False, base_offset=offset))


def facts(states: list[ProducerState]) -> list[dict[str, object]]:
    return [{name: getattr(state, name) for name in ProducerState.__slots__} for state in states]


@pytest.fixture
def producers(tmp_path: Path) -> Producers:
    return Producers(tmp_path)


def test_producers_do_not_disturb_each_other(producers: Producers) -> None:
    producers.record(data(1, 0, 0, count=3), None)
    producers.record(data(2, 3, 0, count=5), None)

    assert producers.check(data(1, 0, 3)) is None
    assert producers.check(data(2, 0, 5)) is None
    assert producers.check(data(3, 0, 99)) is None
    with pytest.raises(OutOfOrderSequence):
        producers.check(data(1, 0, 5))
    assert len(producers) == 2


def test_the_oldest_transaction_without_an_outcome_is_known(producers: Producers) -> None:
    assert producers.first_open_offset() is None
    producers.record(data(1, 10, transactional=True), None)
    producers.record(data(2, 11, transactional=True), None)
    producers.record(data(1, 12, 1, transactional=True), None)
    assert producers.first_open_offset() == 10

    assert producers.record(marker(1, 13), ABORT) == (1, 10, 13, True)
    assert producers.first_open_offset() == 11


def test_a_transaction_is_unstable_until_its_outcome_is_replicated(producers: Producers) -> None:
    producers.record(data(1, 10, transactional=True), None)
    assert producers.first_unstable_offset(11) == 10
    producers.record(marker(1, 11), ABORT)

    assert producers.first_unstable_offset(11) == 10
    assert producers.first_unstable_offset(12) is None


def test_silent_producers_expire_unless_a_transaction_is_open(producers: Producers) -> None:
    producers.record(data(1, 0), None)
    producers.record(data(2, 1, transactional=True), None)

    producers.remove_expired(TIMESTAMP)
    assert len(producers) == 2
    producers.remove_expired(TIMESTAMP + 1)
    assert [state.producer_id for state in producers] == [2]


FEW = LogConfig(max_producer_ids=3, producer_id_live_ms=1000)


def ids(producers: Producers) -> list[int]:
    return [state.producer_id for state in producers]


def test_a_new_producer_replaces_the_one_that_has_not_written_for_longest(producers: Producers) -> None:
    for offset, producer_id in enumerate([1, 2, 3, 1]):
        producers.record(data(producer_id, offset, sequence=offset), None, now_ms=offset)

    producers.ensure_room(ProducerId(4), 1002, FEW)
    producers.record(data(4, 4), None, now_ms=1002)

    assert ids(producers) == [3, 1, 4]


def test_a_producer_that_has_written_lately_is_not_replaced(producers: Producers) -> None:
    for producer_id in (1, 2, 3):
        producers.record(data(producer_id, producer_id), None, now_ms=producer_id)

    with pytest.raises(TooManyProducers, match="there are 3 producer ids"):
        producers.ensure_room(ProducerId(4), 1000, FEW)
    producers.ensure_room(ProducerId(1), 1000, FEW)  # it is there already

    assert ids(producers) == [1, 2, 3]


def test_a_producer_with_an_open_transaction_is_not_replaced(producers: Producers) -> None:
    for producer_id in (1, 2, 3):
        producers.record(data(producer_id, producer_id, transactional=producer_id < 3), None, now_ms=0)

    producers.ensure_room(ProducerId(4), 10**6, FEW)
    assert ids(producers) == [1, 2]

    producers.record(data(4, 4, transactional=True), None, now_ms=0)
    with pytest.raises(TooManyProducers):
        producers.ensure_room(ProducerId(5), 10**6, FEW)


def test_a_follower_replaces_the_same_producers_as_its_leader(producers: Producers, tmp_path: Path) -> None:
    follower = Producers(tmp_path)
    for offset, producer_id in enumerate([1, 2, 3, 1, 4, 5, 2]):
        batch = data(producer_id, offset, sequence=offset)
        producers.ensure_room(batch.producer_id, 1001 * offset, FEW)
        producers.record(batch, None, now_ms=1001 * offset)
        follower.record(batch, None)
        follower.trim(FEW.max_producer_ids)

    assert ids(producers) == ids(follower) == [4, 5, 2]


def test_while_a_broker_has_too_many_a_partition_with_few_accepts_new_ones(tmp_path: Path) -> None:
    large, small = Producers(tmp_path), Producers(tmp_path)
    space = ProducerSpace(most=GUARANTEED + 1)
    large.join(space)
    small.join(space)
    for producer_id in range(GUARANTEED + 1):
        large.ensure_room(ProducerId(producer_id), 0, LogConfig())
        large.record(data(producer_id, producer_id), None, now_ms=0)

    small.ensure_room(ProducerId(1), 0, LogConfig())
    with pytest.raises(TooManyProducers):
        large.ensure_room(ProducerId(10**6), 0, LogConfig())


def test_a_snapshot_brings_back_every_producer_with_its_last_batch(
    producers: Producers, tmp_path: Path
) -> None:
    producers.record(data(1, 10, 0, count=3), None)
    producers.record(data(1, 13, 3, count=2), None)
    producers.record(data(2, 15, 2**31 - 2, count=4, transactional=True), None)
    producers.record(data(3, 19, transactional=True), None)
    producers.record(marker(3, 20), ABORT)
    producers.next_offset = 21
    producers.take_snapshot()

    restored = Producers(tmp_path, snapshots_in(names_in(tmp_path)))
    restored.restore(start=0, end=21)

    assert restored.next_offset == 21
    assert restored.first_open_offset() == 15
    one, two, three = list(restored)
    assert [tuple(one.recent), tuple(two.recent), tuple(three.recent)] == [
        ((3, 4, 13, 14, TIMESTAMP),),
        ((2**31 - 2, 1, 15, 18, TIMESTAMP),),
        ((0, 0, 19, 19, TIMESTAMP),),
    ]
    assert (two.txn_first_offset, three.txn_first_offset) == (15, None)
    assert (two.coordinator_epoch, three.coordinator_epoch) == (-1, 2)


def test_a_producer_known_by_a_marker_only_survives_a_snapshot() -> None:
    state = ProducerState(ProducerId(5))
    state.end_transaction(marker(5, 30), ABORT)

    (restored,) = decode_snapshot(encode_snapshot([state]))

    assert facts([restored]) == facts([state])


def test_no_snapshot_is_made_of_an_empty_log(producers: Producers, tmp_path: Path) -> None:
    producers.take_snapshot()

    assert list(tmp_path.iterdir()) == []


def snapshots(producers: Producers, directory: Path, *offsets: int) -> list[Path]:
    """A snapshot per offset, each with one producer of that id."""
    for offset in offsets:
        producers.clear(offset)
        producers.record(data(offset, offset - 1), None)
        producers.take_snapshot()
    return [directory / f"{offset:020d}.snapshot" for offset in offsets]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(0, 30, ([30], 30)), (0, 29, ([20], 20)), (20, 29, ([], 20)), (15, 20, ([20], 20)), (0, 5, ([], 0))],
)
def test_the_newest_snapshot_within_the_log_counts(
    producers: Producers, tmp_path: Path, start: int, end: int, expected: tuple[list[int], int]
) -> None:
    paths = snapshots(producers, tmp_path, 10, 20, 30)

    producers.restore(start=start, end=end)

    assert ([state.producer_id for state in producers], producers.next_offset) == expected
    assert [path.exists() for path in paths] == [offset <= end for offset in (10, 20, 30)]


@pytest.mark.parametrize("size", [0, 5, 9, 10, 55])
def test_a_torn_snapshot_gives_way_to_the_one_before(producers: Producers, tmp_path: Path, size: int) -> None:
    _, newest = snapshots(producers, tmp_path, 10, 20)
    newest.write_bytes(newest.read_bytes()[:size])

    producers.restore(start=0, end=20)

    assert [state.producer_id for state in producers] == [10]
    assert not newest.exists()


def test_every_flipped_bit_of_a_snapshot_is_noticed() -> None:
    state = ProducerState(ProducerId(5))
    state.record(data(5, 30))
    content = encode_snapshot([state])

    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 0x10
        with pytest.raises(CorruptSnapshot):
            decode_snapshot(bytes(damaged))


def test_snapshots_without_a_segment_go_but_for_the_newest(producers: Producers, tmp_path: Path) -> None:
    paths = snapshots(producers, tmp_path, 10, 20, 30, 40)

    producers.remove_snapshots(keep={20})

    assert [path.exists() for path in paths] == [False, True, False, True]


def test_a_space_counts_the_producers_of_its_logs_at_any_time(tmp_path: Path) -> None:
    space = ProducerSpace()
    other = Producers(tmp_path / "other")
    other.record(data(1, 0), None)
    other.join(space)
    producers = Producers(tmp_path)
    producers.join(space)
    counts = []
    for offset in range(6):
        producers.record(data(offset, offset), None, now_ms=0)
    producers.next_offset = 6
    producers.take_snapshot()
    counts.append(space.count)
    producers.trim(5)
    counts.append(space.count)
    producers.ensure_room(ProducerId(9), 10**6, LogConfig(max_producer_ids=5, producer_id_live_ms=1000))
    counts.append(space.count)
    producers.remove_expired(TIMESTAMP + 1)
    counts.append(space.count)
    producers.restore(start=0, end=6)
    counts.append(space.count)
    other.join(ProducerSpace())
    counts.append(space.count)
    producers.clear(0)
    counts.append(space.count)

    assert counts == [7, 6, 5, 1, 7, 6, 0]
