import copy

import pytest

from headrace.protocol.schema.fetch import FetchTopic, LeaderIdAndEpoch, PartitionData, ReplicaState
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic


def test_a_missing_field_is_a_type_error() -> None:
    with pytest.raises(TypeError, match=r"FetchTopic.__init__\(\) missing 1 required keyword-only argument"):
        FetchTopic(topic="orders")  # type: ignore[call-arg]


def test_an_unknown_field_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'nmae'"):
        MetadataRequestTopic(nmae="orders")  # type: ignore[call-arg]


def test_values_are_given_by_keyword_only() -> None:
    with pytest.raises(TypeError, match="positional"):
        ReplicaState(1, 2)  # type: ignore[call-arg]


def test_a_field_that_is_not_declared_cannot_be_stored() -> None:
    with pytest.raises(AttributeError):
        ReplicaState().epoch = 3  # type: ignore[attr-defined]


def test_a_struct_field_defaults_to_that_struct_with_its_defaults() -> None:
    partition = PartitionData(partition_index=0, high_watermark=1, aborted_transactions=None, records=None)
    assert partition.current_leader == LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1)


def test_structs_are_equal_when_their_fields_are() -> None:
    assert ReplicaState(replica_id=1) == ReplicaState(replica_id=1)
    assert ReplicaState(replica_id=1) != ReplicaState(replica_id=2)
    assert ReplicaState(replica_id=-1) != LeaderIdAndEpoch(leader_id=-1)


def test_a_list_equals_a_tuple_in_a_field() -> None:
    topic = MetadataRequestTopic(name="orders")
    assert MetadataRequest(topics=[topic]) == MetadataRequest(topics=(copy.copy(topic),))
    assert MetadataRequest(topics=[topic]) != MetadataRequest(topics=[topic, topic])


def test_a_struct_cannot_be_hashed() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(ReplicaState())


def test_a_struct_shows_its_fields_and_the_size_of_record_data() -> None:
    assert repr(ReplicaState(replica_id=1)) == "ReplicaState(replica_id=1, replica_epoch=-1)"
    partition = PartitionData(
        partition_index=0, high_watermark=1, aborted_transactions=None, records=memoryview(bytes(9))
    )
    assert "records=<9 bytes>" in repr(partition)
