"""`headrace cluster reassign` and `drain`: partitions that go to other brokers."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from headrace.cli import completing
from headrace.cli.cluster_tables import draw_moves, draw_reassignments
from headrace.cli.progress import follow
from headrace.cli.session import Session, options
from headrace.client.cluster.cluster import Cluster
from headrace.client.cluster.moves import Move, plan_of, read_plan
from headrace.client.cluster.throttle import throttled
from headrace.client.errors import ClientError
from headrace.protocol.ids import TopicPartition

ROUNDS: Final = 10  # of a drain: topics may be made on the broker meanwhile

partition_option = click.option(
    "--partition", "indexes", type=click.IntRange(0), multiple=True, help="Of the topic; repeat for more."
)
_wait = click.option("--wait", is_flag=True, help="Return when all have arrived, and say how far they are.")
_timeout = click.option(
    "--timeout", "timeout_s", type=click.FloatRange(0), metavar="SECONDS", help="How long to --wait at most."
)
_throttle = click.option(
    "--throttle",
    type=click.IntRange(1),
    metavar="BYTES",
    help="How many a second a broker may copy; lifted at the end of --wait.",
)


@click.command()
@click.option("--topic", metavar="NAME", shell_complete=completing.topics, help="Whose partitions move.")
@partition_option
@click.option(
    "--to",
    metavar="ID,...",
    shell_complete=completing.brokers,
    help="The brokers they move to, the preferred leader first.",
)
@click.option(
    "--from-file",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A plan, as kafka-reassign-partitions takes it.",
)
@click.option("--cancel", is_flag=True, help="Have them stay where they were; without a topic or file: all.")
@_wait
@_timeout
@_throttle
@options
@click.pass_obj
def reassign(
    session: Session,
    *,
    topic: str | None,
    indexes: Sequence[int],
    to: str | None,
    file: Path | None,
    timeout_s: float | None,
    throttle: int | None,
    cancel: bool,
    wait: bool,
) -> None:
    """Move partitions:  headrace cluster reassign --topic orders --partition 0 --to 1,2,3

    Without --partition every partition of the topic moves, each to be led by the next of the brokers. The
    records are copied before the old replicas go: clients notice nothing.
    """
    if cancel:
        if to is not None:
            raise click.UsageError("--cancel and --to contradict each other.")
        _cancel(session, topic, indexes, file)
        return
    moves = _moves(session.cluster, topic, indexes, to, file)
    with _throttled(session, moves, throttle, wait=wait):
        _show(session, moves, session.cluster.reassign(moves))
        if wait:
            follow(session, session.cluster.wait(moves), len(moves), timeout_s)


@click.command()
@click.argument("broker_id", metavar="BROKER", type=click.IntRange(0), shell_complete=completing.brokers)
@click.option("--dry-run", is_flag=True, help="Show where its replicas would go, and move nothing.")
@_wait
@_timeout
@_throttle
@options
@click.pass_obj
def drain(
    session: Session,
    *,
    broker_id: int,
    timeout_s: float | None,
    throttle: int | None,
    dry_run: bool,
    wait: bool,
) -> None:
    """Move everything off a broker:  headrace cluster drain 3 --wait

    Its replicas are spread over the other brokers, in other racks than those they have already. Then it can
    be stopped for good. With --dry-run --json this prints a plan for `headrace cluster reassign --from-file`.
    """
    moves = session.cluster.plan_drain(broker_id)
    if dry_run:
        _show(session, moves, session.cluster.check(moves), nothing=_empty(broker_id))
        return
    with _throttled(session, moves, throttle, wait=wait):
        _show(session, moves, session.cluster.reassign(moves) if moves else {}, nothing=_empty(broker_id))
        if wait and moves:
            _wait_until_empty(session, broker_id, moves, timeout_s)
            if not session.as_json:
                click.echo(_empty(broker_id))


def of_topic(cluster: Cluster, topic: str, indexes: Sequence[int]) -> list[TopicPartition]:
    """These partitions of a topic, if they are there; all if none are given."""
    there = [each.partition for each in cluster.partitions_of(topic)]
    for index in indexes:
        if index not in there:
            raise ClientError(f"{topic} has no partition {index}, only 0 to {max(there)}")
    return [TopicPartition(topic, index) for index in dict.fromkeys(indexes or there)]


def _moves(
    cluster: Cluster, topic: str | None, indexes: Sequence[int], to: str | None, file: Path | None
) -> list[Move]:
    """What the options ask for."""
    if file is not None and topic is None and to is None and not indexes:
        return read_plan(file.read_text("utf-8", errors="replace"), str(file))
    if file is not None or topic is None or to is None:
        raise click.UsageError("Give --topic and --to, or --from-file.")
    brokers = _ids(to)
    return [
        Move(topic=place.topic, partition=place.partition, replicas=_from(brokers, 0 if indexes else number))
        for number, place in enumerate(of_topic(cluster, topic, indexes))
    ]


def _from(brokers: Sequence[int], number: int) -> tuple[int, ...]:
    """The brokers, beginning with another one each time: 1,2,3, then 2,3,1."""
    first = number % len(brokers)
    return (*brokers[first:], *brokers[:first])


def _ids(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts):
        raise click.UsageError(f"--to {text}: expected broker ids such as 1,2,3.")
    return [int(part) for part in parts]


def _cancel(session: Session, topic: str | None, indexes: Sequence[int], file: Path | None) -> None:
    if indexes and topic is not None:
        places = of_topic(session.cluster, topic, indexes)
    else:
        named = (
            None
            if file is None
            else {each.topic_partition for each in _moves(session.cluster, None, (), None, file)}
        )
        places = [
            each.topic_partition
            for each in session.cluster.reassignments()
            if (topic is None or each.topic == topic) and (named is None or each.topic_partition in named)
        ]
    stopped = session.cluster.cancel(places)
    session.show(
        {"cancelled": stopped}, lambda: draw_reassignments(stopped) if stopped else "nothing is on its way"
    )


@contextmanager
def _throttled(session: Session, moves: Sequence[Move], rate: int | None, *, wait: bool) -> Iterator[None]:
    if rate is None or not moves:
        yield
        return
    if not wait:
        raise click.UsageError("--throttle goes with --wait: it is lifted when all have arrived.")
    before = session.cluster.check(moves)
    with throttled(session.admin, session.cluster.brokers(), moves, before, rate=rate):
        yield


def _show(
    session: Session, moves: Sequence[Move], before: Mapping[TopicPartition, Sequence[int]], nothing: str = ""
) -> None:
    session.show(plan_of(moves), lambda: draw_moves(moves, before) if moves else nothing)


def _wait_until_empty(session: Session, broker_id: int, moves: list[Move], timeout_s: float | None) -> None:
    for _ in range(ROUNDS):
        if not moves:
            return
        follow(session, session.cluster.wait(moves), len(moves), timeout_s)
        moves = session.cluster.plan_drain(broker_id)  # of topics that were made there meanwhile
        if moves:
            session.cluster.reassign(moves)
    raise ClientError(f"broker {broker_id} keeps getting new partitions: have no topics made meanwhile")


def _empty(broker_id: int) -> str:
    return f"no replica is left on broker {broker_id}"
