"""Every story with what it takes: the full matrix, and the few that run with all the other tests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cluster import (
    absences,
    chaos,
    cuts,
    disks,
    exactly_once,
    moves,
    network,
    others,
    pauses,
    racks,
    returns,
    stories,
    topics,
    transactions,
)
from cluster.stage import EMBEDDED, ENSEMBLE, Outcome, Story, play, play_in_network

BOTH: Final = (EMBEDDED, ENSEMBLE)


def _always() -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Entry:
    """A story, what keeps it from being played here, and how it is played."""

    story: Story
    coordinations: tuple[str, ...] = BOTH
    why_not: Callable[[], str | None] = _always
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.story.__name__

    def play(self, coordination: str, root: Path) -> Outcome:
        if self.story is racks.a_rack_is_cut_off:
            return racks.play_in_racks(self.story, coordination, root)
        if self.why_not is network.why_not:
            return play_in_network(self.story, coordination, root)
        if self.why_not is disks.why_not:
            with disks.small_disk(root / f"broker-{disks.SMALL}"):
                return play(self.story, coordination, root)
        return play(self.story, coordination, root, self.settings)


def _cut(story: Story) -> Entry:
    return Entry(story, why_not=network.why_not)


MATRIX: Final = [
    Entry(stories.a_leader_is_killed),
    Entry(stories.a_leader_dies_with_what_only_it_has),
    Entry(stories.a_follower_is_killed),
    Entry(stories.the_controller_is_killed),
    Entry(stories.the_coordinator_of_a_group_is_killed),
    Entry(stories.two_are_killed_at_once),
    Entry(stories.all_are_killed_at_once),
    Entry(stories.all_are_killed_and_come_back_one_by_one),
    Entry(stories.brokers_are_killed_at_random),
    Entry(returns.a_broker_that_missed_something_comes_back_first),
    Entry(returns.the_last_one_standing_dies),
    Entry(returns.a_topic_may_lose_records_and_does),
    Entry(stories.brokers_are_restarted_one_after_the_other),
    Entry(pauses.a_leader_sleeps),
    Entry(pauses.a_follower_sleeps),
    Entry(pauses.the_controller_sleeps),
    Entry(pauses.the_coordinator_of_a_group_sleeps),
    Entry(pauses.everybody_sleeps),
    Entry(pauses.a_woken_leader_is_asked_to_write),
    Entry(pauses.a_woken_coordinator_is_asked_for_offsets),
    Entry(pauses.the_event_loop_of_a_leader_is_stuck),
    _cut(cuts.a_leader_is_cut_from_the_other_brokers),
    _cut(cuts.the_controller_is_cut_from_the_other_brokers),
    _cut(cuts.the_controller_is_refused_by_a_leader),
    _cut(cuts.a_leader_is_cut_from_zookeeper),
    _cut(cuts.the_controller_is_cut_from_zookeeper),
    _cut(cuts.a_leader_is_cut_from_all_but_its_clients),
    _cut(cuts.the_coordinator_of_a_group_is_cut_from_all_but_its_clients),
    _cut(cuts.everybody_is_cut_from_zookeeper),
    _cut(cuts.all_brokers_are_cut_from_one_another),
    _cut(cuts.the_network_is_cut_at_random),
    Entry(racks.a_rack_is_cut_off, coordinations=(ENSEMBLE,), why_not=network.why_not),
    _cut(chaos.everything_happens_at_once),
    Entry(absences.zookeeper_is_killed),
    Entry(absences.zookeeper_sleeps),
    Entry(absences.a_leader_is_killed_while_zookeeper_is_away),
    Entry(absences.all_are_killed_and_zookeeper_too),
    Entry(absences.the_leader_of_the_ensemble_is_killed, coordinations=(ENSEMBLE,)),
    Entry(absences.the_leader_of_the_ensemble_sleeps, coordinations=(ENSEMBLE,)),
    Entry(moves.a_broker_joins_and_another_is_drained),
    Entry(moves.a_broker_that_takes_replicas_over_is_killed),
    Entry(moves.a_controller_that_moves_replicas_is_killed),
    Entry(moves.replicas_move_to_and_fro),
    Entry(moves.replicas_move_within_a_node, settings=moves.NODE),
    Entry(moves.a_broker_of_a_node_that_takes_replicas_over_is_killed, settings=moves.NODE),
    Entry(moves.the_preferred_leader_returns, settings=moves.PREFERRED),
    Entry(topics.topics_come_and_go_while_controllers_are_killed),
    Entry(disks.a_disk_is_full, why_not=disks.why_not),
    Entry(exactly_once.workers_are_killed_in_turn),
    Entry(exactly_once.workers_and_brokers_are_killed),
    Entry(transactions.a_transaction_coordinator_is_killed),
    Entry(transactions.a_transaction_coordinator_sleeps),
    _cut(transactions.a_transaction_coordinator_is_cut_off_and_killed),
    Entry(transactions.a_leader_is_killed_that_markers_wait_for),
    Entry(transactions.all_are_killed_with_open_transactions),
    Entry(transactions.a_transaction_coordinator_is_drained),
    Entry(others.kafka_python_writes_while_a_leader_is_killed),
    Entry(others.aiokafka_writes_while_a_leader_is_killed),
    Entry(others.java_writes_while_a_leader_is_killed, why_not=others.why_no_java),
]

SHORT: Final = [
    (Entry(stories.each_is_killed_in_turn), EMBEDDED),
    (Entry(stories.all_are_killed_at_once), EMBEDDED),
    (Entry(stories.brokers_are_restarted_one_after_the_other), ENSEMBLE),
    (Entry(pauses.a_woken_leader_is_asked_to_write), ENSEMBLE),
    (Entry(pauses.a_follower_sleeps), EMBEDDED),
    (Entry(pauses.a_woken_coordinator_is_asked_for_offsets), EMBEDDED),
    (Entry(pauses.the_event_loop_of_a_leader_is_stuck), EMBEDDED),
    (_cut(cuts.the_controller_is_refused_by_a_leader), EMBEDDED),
    (_cut(cuts.a_leader_is_cut_from_all_but_its_clients), EMBEDDED),
    (Entry(absences.zookeeper_is_killed), EMBEDDED),
    (Entry(moves.a_broker_joins_and_another_is_drained), EMBEDDED),
    (Entry(disks.a_disk_is_full, why_not=disks.why_not), EMBEDDED),
    (Entry(exactly_once.workers_are_killed_in_turn), EMBEDDED),
]
LONG: Final = {  # of those; a file of tests/scenarios has the rule, and other stories play it with processes
    stories.all_are_killed_at_once,  # power_cut.txt; each_is_killed_in_turn
    pauses.a_follower_sleeps,  # follower_leaves_the_isr.txt; the_event_loop_of_a_leader_is_stuck
    cuts.the_controller_is_refused_by_a_leader,  # refused_connections.txt; the other cut
}
