from hypothesis import given
from hypothesis import strategies as st

from headrace.coordinators.group.offsets import Committed, offset_record, offset_tombstone
from headrace.coordinators.group.records import (
    OffsetCommitKey,
    OffsetCommitValue,
    decode_record,
    encode_record,
)

names = st.text(st.characters(codec="utf-8"), max_size=20)
int32, int64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)


def commits(expires: st.SearchStrategy[int] = int64) -> st.SearchStrategy[Committed]:
    return st.builds(Committed, int64, int32, names, int64, expires)


@given(group=names, topic=names, partition=int32, committed=commits())
def test_a_commit_comes_back_as_it_was_written(
    group: str, topic: str, partition: int, committed: Committed
) -> None:
    written = offset_record(group, topic, partition, committed)
    if committed.expires_ms != -1:  # the version that has room for it has none for a leader epoch
        written = offset_record(group, topic, partition, committed._replace(leader_epoch=-1))

    assert decode_record(*encode_record(written)) == written


@given(group=names, topic=names, partition=int32, committed=commits(expires=st.just(-1)))
def test_a_commit_is_written_as_its_schema_says(
    group: str, topic: str, partition: int, committed: Committed
) -> None:
    record = offset_record(group, topic, partition, committed)
    assert isinstance(record.key, OffsetCommitKey)
    assert isinstance(record.value, OffsetCommitValue)

    assert encode_record(record) == (
        b"\0\1" + b"".join(record.key.encode(1)),
        b"\0\3" + b"".join(record.value.encode(3)),
    )


def test_a_commit_that_is_to_be_forgotten_has_the_same_key_and_no_value() -> None:
    key, _ = encode_record(offset_record("g", "t", 1, Committed(1, -1, "", 0)))

    assert encode_record(offset_tombstone("g", "t", 1)) == (key, None)
