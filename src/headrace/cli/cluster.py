"""`headrace cluster`: status, reassign, drain, elect."""

from collections.abc import Sequence

import click

from headrace.cli import completing
from headrace.cli.asking import ask
from headrace.cli.cluster_move import drain, of_topic, partition_option, reassign
from headrace.cli.cluster_tables import draw_elections, draw_status
from headrace.cli.lazy import LazyGroup
from headrace.cli.session import Session, options
from headrace.cli.texts import count
from headrace.client.errors import ClientError
from headrace.protocol.ids import TopicPartition


@click.group(cls=LazyGroup)
def cluster() -> None:
    """Show a cluster's state; move partitions, leaders and brokers."""


cluster.add_command(reassign)
cluster.add_command(drain)


@cluster.command()
@options
@click.pass_obj
def status(session: Session) -> None:
    """Show brokers, and partitions that need care:  headrace cluster status

    A broker is up, silent (it counts as alive and does not answer), or down. A partition is offline (no
    replica is alive), leaderless (none is alive that surely has every record), under min ISR (too few are in
    sync for acks=all) or under-replicated (some are not in sync).
    """
    found = session.cluster.status()
    session.show(found, lambda: draw_status(found))


@cluster.command()
@click.option("--preferred", "kind", flag_value="preferred", default=True, help="The default.")
@click.option("--unclean", "kind", flag_value="unclean", help="Whoever is alive; records may be lost.")
@click.option(
    "--topic", metavar="NAME", shell_complete=completing.topics, help="Only this topic's partitions."
)
@partition_option
@click.option("--yes", is_flag=True, help="Do not ask before an unclean election.")
@options
@click.pass_obj
def elect(session: Session, kind: str, topic: str | None, indexes: Sequence[int], *, yes: bool) -> None:
    """Let the preferred replicas lead:  headrace cluster elect --topic orders

    Where that is in sync, the first of a partition's replicas leads again. With --unclean any replica that is
    alive leads where nobody does: what only the others have is lost, also if it was acknowledged.
    """
    if indexes and topic is None:
        raise click.UsageError("--partition is of a --topic.")
    unclean = kind == "unclean"
    places = None if topic is None else of_topic(session.cluster, topic, indexes)
    if unclean and not yes:
        _ask(places)
    found = session.cluster.elect(places, unclean=unclean)
    nothing = "nobody had to be elected"
    session.show(found, lambda: draw_elections(found) if found else nothing)
    if refused := [each for each in found if each.refused is not None]:
        raise ClientError(f"{count(len(refused), 'partition')} could not have the leader asked for")


def _ask(places: Sequence[TopicPartition] | None) -> None:
    """Return if losing records is fine."""
    if places is None:
        what = "every partition that has no leader"
    else:
        what = str(places[0]) if len(places) == 1 else count(len(places), "partition")
    question = f"Elect a leader that may lack acknowledged records, for {what}? They would be lost"
    ask(question, allowed=f"for an unclean election of {what}", declined="nobody was elected")
