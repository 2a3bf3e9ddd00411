"""Whoever is no member: administrators, consumers that assign themselves, the curious."""

from collections.abc import Mapping, Sequence
from typing import Any

from compat.group_conversations.offsets import (
    Positions,
    Wanted,
    offsets_of_one_group,
    topics_to_commit,
    wanted_of_group,
)
from compat.group_conversations.talk import Talk
from headrace.protocol.message import Message
from headrace.protocol.schema.consumer_group_describe import ConsumerGroupDescribeRequest
from headrace.protocol.schema.delete_groups import DeleteGroupsRequest
from headrace.protocol.schema.describe_groups import DescribeGroupsRequest
from headrace.protocol.schema.find_coordinator import FindCoordinatorRequest
from headrace.protocol.schema.list_groups import ListGroupsRequest, ListGroupsResponse
from headrace.protocol.schema.offset_commit import OffsetCommitRequest
from headrace.protocol.schema.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.protocol.schema.offset_fetch import OffsetFetchRequest


class Desk:
    """Asks about groups from outside. Groups are named as the conversation names them: "g"."""

    def __init__(self, talk: Talk, name: str = "desk") -> None:
        self.talk = talk
        self.name = name

    def find(self, *keys: str, key_type: int = 0) -> Any:
        """Who coordinates these; before v4 a request has one key."""
        if self.talk.version_of(FindCoordinatorRequest) < 4:
            return [self._ask(FindCoordinatorRequest(key=key, key_type=key_type)) for key in keys]
        return self._ask(FindCoordinatorRequest(coordinator_keys=keys, key_type=key_type))

    def commit(self, group: str, positions: Positions, **changes: Any) -> Any:
        """Commit offsets as a consumer that assigns itself partitions does."""
        fields: dict[str, Any] = {
            "group_id": self.talk.called(group),
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "topics": topics_to_commit(positions, self.talk.topic_ids),
        }
        return self._ask(OffsetCommitRequest(**(fields | changes)))

    def fetch(self, group: str, wanted: Wanted = None, *, require_stable: bool = False, **member: Any) -> Any:
        """What a group has committed: of some partitions, or of all."""
        if self.talk.version_of(OffsetFetchRequest) < 8:
            group = self.talk.called(group)
            return self._ask(offsets_of_one_group(group, wanted, require_stable=require_stable))
        return self.fetch_many({group: wanted}, require_stable=require_stable, **member)

    def fetch_many(self, groups: Mapping[str, Wanted], *, require_stable: bool = False, **member: Any) -> Any:
        """What several groups have committed, from v8 on."""
        wanted = [
            wanted_of_group(self.talk.called(group), topics, self.talk.topic_ids, **member)
            for group, topics in groups.items()
        ]
        return self._ask(OffsetFetchRequest(groups=wanted, require_stable=require_stable))

    def delete_offsets(self, group: str, partitions: Mapping[str, Sequence[int]]) -> Any:
        topics = [
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=each) for each in which]
            )
            for topic, which in partitions.items()
        ]
        return self._ask(OffsetDeleteRequest(group_id=self.talk.called(group), topics=topics))

    def describe(self, *groups: str, operations: bool = False) -> Any:
        named = [self.talk.called(group) for group in groups]
        return self._ask(DescribeGroupsRequest(groups=named, include_authorized_operations=operations))

    def describe_consumers(self, *groups: str, operations: bool = False) -> Any:
        named = [self.talk.called(group) for group in groups]
        return self._ask(
            ConsumerGroupDescribeRequest(group_ids=named, include_authorized_operations=operations)
        )

    def list(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> Any:
        """The groups of this conversation, among all that there are."""
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        return self.talk.ask(self.name, request, self._own_groups)

    def delete(self, *groups: str) -> Any:
        return self._ask(DeleteGroupsRequest(groups_names=[self.talk.called(group) for group in groups]))

    def _own_groups(self, answer: ListGroupsResponse) -> ListGroupsResponse:
        own = [group for group in answer.groups if group.group_id.startswith(self.talk.prefix)]
        return ListGroupsResponse(error_code=answer.error_code, groups=own)

    def _ask(self, request: Message) -> Any:
        return self.talk.ask(self.name, request)
