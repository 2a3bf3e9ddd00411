"""What is asked of groups' coordinators, whoever they are at the moment.

Coordinators are looked for anew in every question, and again when one has moved or does not answer.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from headrace.client.groups.changes import commit, delete, forget
from headrace.client.groups.descriptions import is_of_consumers, state_of
from headrace.client.groups.group import Described
from headrace.client.groups.talks import Offsets, committed, coordinators, describe, listed
from headrace.client.wire.connection import Connection
from headrace.client.wire.live_brokers import ANSWER_S, QUESTION_S, SILENT_S, LiveBrokers, Node, nodes_of
from headrace.client.wire.settling import Again, Patience, Settled, settle
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.metadata import MetadataResponse

OFFSETS: Final = "__consumer_offsets"  # who leads its partitions, coordinates groups
MISSED_S: Final = 1.0  # for asking those again without whom there is an answer too
GROUPS_IN_A_SECOND: Final = 1000  # that a broker describes, with time to spare

Answer = TypeVar("Answer")
Talk = Callable[[Node, list[str], Connection], Mapping[str, Answer | Again]]


@dataclass(frozen=True, slots=True)
class Listed:
    """A group that a broker has named. State and type are empty if the broker is too old to say."""

    state: str
    type: str
    node: Node


@dataclass(frozen=True, slots=True)
class Listing:
    """The groups of all brokers that have answered, by name; and of those that have not, why."""

    groups: dict[str, Listed]
    answered: int
    missing: tuple[str, ...]


class GroupQuestions:
    """For any number of threads."""

    def __init__(self, brokers: LiveBrokers) -> None:
        self._brokers = brokers

    def listed(self) -> Listing:
        """Every group that somebody knows of. All are asked again while somebody is missing, for a moment."""
        patience = Patience(QUESTION_S, retries_s=MISSED_S)
        while True:
            found = self._brokers.metadata([OFFSETS])
            answers = self._brokers.scatter({node: [node] for node in nodes_of(found)}, listed)
            missing = [each.why for each in answers.values() if isinstance(each, Again)]
            missing += unled(found)
            if not missing or not patience.rest():
                break
        heard = {node: each for node, each in answers.items() if not isinstance(each, Again)}
        groups = {
            each.group_id: Listed(state_of(each.group_state), each.group_type.lower(), node)
            for node, groups in heard.items()
            for each in groups
            if is_of_consumers(each)
        }
        return Listing(groups, len(heard), tuple(missing))

    def described(
        self, names: Iterable[str], patience: Patience, known: Mapping[str, Node] | None = None
    ) -> Settled[str, Described]:
        """The groups with their members."""
        return self._settled(list(names), describe, patience, known)

    def committed(
        self, names: Iterable[str], patience: Patience, known: Mapping[str, Node] | None = None
    ) -> Settled[str, Offsets]:
        """What each group has committed, by partition."""
        return self._settled(list(names), committed, patience, known)

    def commit(
        self, name: str, offsets: Mapping[TopicPartition, int], patience: Patience
    ) -> Settled[str, Offsets]:
        """Commit for a group; GroupActive if it has members."""
        return self._settled([name], partial(commit, offsets), patience)

    def delete(self, names: Iterable[str], patience: Patience) -> Settled[str, bool]:
        """Delete groups; GroupActive if one of them has members."""
        return self._settled(list(names), delete, patience)

    def forget(self, name: str, places: Iterable[TopicPartition], patience: Patience) -> Settled[str, bool]:
        """Forget what a group has committed for some partitions."""
        return self._settled([name], partial(forget, list(places)), patience)

    def _settled(
        self,
        names: list[str],
        talk: Talk[Answer],
        patience: Patience,
        known: Mapping[str, Node] | None = None,
    ) -> Settled[str, Answer]:
        def within_s() -> float:
            return max(SILENT_S, min(ANSWER_S + len(names) / GROUPS_IN_A_SECOND, patience.left_s))

        return settle(
            names,
            locate=lambda some: self._brokers.first(partial(coordinators, some), within_s()),
            ask=lambda asked: self._brokers.scatter(asked, talk, within_s()),
            patience=patience,
            known=known,
        )


def unled(found: MetadataResponse) -> Iterator[str]:
    """That some groups have no coordinator, if so: those of partitions without a leader that is there."""
    there = {each.node_id for each in found.brokers}
    lost = [each for topic in found.topics for each in topic.partitions if each.leader_id not in there]
    if lost:
        yield f"nobody leads {len(lost)} of the partitions of {OFFSETS}"


def patience_for(names: Iterable[str]) -> Patience:
    """How long a question about so many groups may take."""
    return Patience(QUESTION_S + sum(1 for _ in names) / GROUPS_IN_A_SECOND)
