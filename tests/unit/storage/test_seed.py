"""Seeding a replica with hard links to the closed segments of another log."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.storage.directory import LogDirectory
from headrace.storage.errors import ForeignDirectory
from headrace.storage.identity import Identity
from headrace.storage.log import Log
from headrace.storage.seed import Seed, SeedPlan, plan_seed
from samples.partition import CONFIG as SAMPLE_CONFIG
from samples.partition import facts, written
from support.clock import SettableClock
from support.logs import open_test_log, read_all
from support.records import make_batch
from unit.storage.directory_contents import CONFIG, ORDERS, TOPIC_ID, fill, flip_a_bit

THERE = Identity(2, "our-cluster")


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Log]:
    """A log with several closed segments and an empty active one."""
    log = open_test_log(tmp_path / "source" / "orders-0", CONFIG)
    fill(log)
    log.roll()
    yield log
    log.release()


@pytest.fixture
def target(tmp_path: Path) -> Iterator[LogDirectory]:
    """The log directory of the broker that gets a new replica."""
    directory = open_target(tmp_path)
    yield directory
    directory.release()


def open_target(tmp_path: Path) -> LogDirectory:
    return LogDirectory.open(
        tmp_path / "target", THERE, config_of=lambda _topic: CONFIG, now_ms=SettableClock()
    )


def seed(plan: SeedPlan, target: LogDirectory) -> Log:
    """Do everything that two brokers do to seed a replica."""
    staging = target.prepare_staging(ORDERS)()
    plan.link_into(staging, THERE)
    log = target.open_seeded(ORDERS, TOPIC_ID, plan.log.config, staging, plan.seed)
    target.add_seeded(ORDERS, TOPIC_ID, log)
    return log


def links(directory: Path) -> list[int]:
    """Return how many names each `.log` file in `directory` has."""
    return [path.stat().st_nlink for path in sorted(directory.glob("*.log"))]


def test_a_seeded_log_has_the_records_and_its_segments_are_links(source: Log, target: LogDirectory) -> None:
    log = seed(plan_seed(source, source.log_end_offset), target)

    assert read_all(log) == read_all(source)
    assert links(log.directory) == [2] * (len(source.segments) - 1) + [1]
    assert target.topic_ids[ORDERS] == TOPIC_ID


def test_everything_that_is_derived_from_the_records_comes_with_them(
    tmp_path: Path, target: LogDirectory
) -> None:
    source = written(tmp_path / "source" / "orders-0")
    source.roll()
    log = seed(plan_seed(source, source.log_end_offset), target)

    theirs, ours = facts(source), facts(log)
    for name in ("batches", "epochs", "aborted", "youngest", "stable"):
        assert ours[name] == theirs[name], name
    assert log.config == SAMPLE_CONFIG
    source.release()


def test_only_segments_that_are_committed_as_a_whole_are_linked(source: Log) -> None:
    bases = [segment.base_offset for segment in source.segments]

    assert plan_seed(source, bases[2] + 1).seed == Seed(0, bases[2])
    assert plan_seed(source, bases[2]).base_offsets == tuple(bases[:2])
    assert plan_seed(source, bases[1] - 1).seed.is_empty


def test_segments_before_the_log_start_offset_are_left_out(source: Log, target: LogDirectory) -> None:
    bases = [segment.base_offset for segment in source.segments]
    source.delete_records_before(bases[1] + 1)
    plan = plan_seed(source, source.log_end_offset)
    log = seed(plan, target)

    assert plan.base_offsets[0] == bases[1]
    assert (log.log_start_offset, log.log_end_offset) == (bases[1] + 1, source.log_end_offset)


def test_both_logs_grow_on_their_own(source: Log, target: LogDirectory) -> None:
    log = seed(plan_seed(source, source.log_end_offset), target)
    before = read_all(source)
    log.append(make_batch([b"there"]), leader_epoch=1)
    source.append(make_batch([b"here"]), leader_epoch=1)

    assert read_all(log)[:-1] == read_all(source)[:-1] == before
    assert read_all(log)[-1] != read_all(source)[-1]


def test_a_truncation_does_not_reach_the_other_log(source: Log, target: LogDirectory) -> None:
    log = seed(plan_seed(source, source.log_end_offset), target)
    before = read_all(source)
    log.truncate_to(2)
    log.append(make_batch([b"another record"]), leader_epoch=1)

    assert read_all(source) == before
    assert read_all(log)[:-1] == before[:2]
    assert links(log.directory) == [1]


def test_the_source_may_be_truncated_too(source: Log, target: LogDirectory) -> None:
    log = seed(plan_seed(source, source.log_end_offset), target)
    before = read_all(log)
    source.truncate_to(source.segments[1].base_offset + 1)
    source.append(make_batch([b"another record"]), leader_epoch=1)

    assert read_all(log) == before
    assert links(source.directory) == [2, 1]


def test_recovery_of_a_damaged_link_leaves_the_file_of_the_other_log(
    source: Log, target: LogDirectory
) -> None:
    log = seed(plan_seed(source, source.log_end_offset), target)
    damaged = log.segments[0].path
    flip_a_bit(damaged, damaged.stat().st_size - 1)
    size = damaged.stat().st_size
    log.release()
    again = open_test_log(log.directory, CONFIG)  # without a recovery point: truncated at the damage

    assert again.log_end_offset < source.segments[1].base_offset
    assert source.segments[0].path.stat().st_size == size
    again.release()


def test_deleting_one_of_the_logs_leaves_the_other(source: Log, target: LogDirectory) -> None:
    seed(plan_seed(source, source.log_end_offset), target)
    before = read_all(source)
    target.delete(ORDERS)
    target.unlink_deleted()

    assert read_all(source) == before
    assert links(source.directory) == [1] * len(source.segments)


def test_a_seeded_log_survives_a_crash_and_a_clean_restart(
    source: Log, target: LogDirectory, tmp_path: Path
) -> None:
    seed(plan_seed(source, source.log_end_offset), target)
    expected = read_all(source)
    target.release()
    after_crash = open_target(tmp_path)
    assert read_all(after_crash.logs[ORDERS]) == expected
    after_crash.close()
    after_stop = open_target(tmp_path)
    assert read_all(after_stop.logs[ORDERS]) == expected
    assert after_stop.topic_ids[ORDERS] == TOPIC_ID
    assert max(links(after_stop.logs[ORDERS].directory)) == 2, "opening a log does not copy what is linked"
    after_stop.release()


def test_a_truncated_or_compacted_source_makes_the_plan_stale(source: Log) -> None:
    plan = plan_seed(source, source.log_end_offset)
    assert not plan.is_stale
    source.truncate_to(source.log_end_offset - 1)
    assert plan.is_stale


# -- interrupted ------------------------------------------------------------------------------


def test_what_an_interrupted_seeding_has_left_is_removed_at_the_next_start(
    source: Log, target: LogDirectory, tmp_path: Path
) -> None:
    plan = plan_seed(source, source.log_end_offset)
    staging = target.prepare_staging(ORDERS)()
    plan.link_into(staging, THERE)
    target.release()
    again = open_target(tmp_path)

    assert ORDERS not in again.logs
    assert not staging.exists()
    assert links(source.directory) == [1] * len(source.segments)
    again.release()


def test_a_discarded_seed_is_removed_whether_it_was_renamed_or_not(source: Log, target: LogDirectory) -> None:
    plan = plan_seed(source, source.log_end_offset)
    for is_renamed in (False, True):
        staging = target.prepare_staging(ORDERS)()
        plan.link_into(staging, THERE)
        if is_renamed:
            target.open_seeded(ORDERS, TOPIC_ID, CONFIG, staging, plan.seed).release()
        target.discard_seeded(ORDERS, staging)
        target.unlink_deleted()
        assert not [path for path in target.path.iterdir() if path.is_dir()]


# -- whose directory it is --------------------------------------------------------------------


def refused(plan: SeedPlan, staging: Path, owner: Identity = THERE) -> None:
    with pytest.raises((ForeignDirectory, OSError)):
        plan.link_into(staging, owner)


def test_only_a_staging_directory_of_that_broker_is_written_to(source: Log, target: LogDirectory) -> None:
    plan = plan_seed(source, source.log_end_offset)
    staging = target.prepare_staging(ORDERS)()
    elsewhere = source.directory.parent / staging.name
    elsewhere.mkdir()
    (target.path / "no-staging").mkdir()
    alias = target.path.parent / "alias"
    alias.symlink_to(target.path)
    linked = target.path / f"orders-0.{'0' * 32}-delete"
    linked.symlink_to(elsewhere)

    refused(plan, staging, Identity(3, "our-cluster"))
    refused(plan, staging, Identity(2, "another-cluster"))
    refused(plan, elsewhere)
    refused(plan, target.path / "no-staging")
    refused(plan, alias / staging.name)
    refused(plan, linked)
    refused(plan, Path(os.path.relpath(staging)))
    refused(plan, target.path / f"orders\0-0.{'1' * 32}-delete")
    refused(plan, Path("/\0") / staging.name)
    refused(plan, staging.with_name(f"orders-0.{'1' * 32}-delete"))
    assert not list(staging.iterdir())
    assert not list(elsewhere.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")
def test_a_directory_of_another_user_is_refused(source: Log, target: LogDirectory) -> None:
    staging = target.prepare_staging(ORDERS)()
    os.chown(staging, 12345, 12345)
    refused(plan_seed(source, source.log_end_offset), staging)
