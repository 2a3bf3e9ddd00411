"""`headrace group delete-offsets`: a group forgets how far it was."""

from collections.abc import Sequence

import click

from headrace.cli import completing
from headrace.cli.asking import ask
from headrace.cli.group_reset import parse_topics
from headrace.cli.session import Session, options
from headrace.cli.texts import count
from headrace.client.errors import ClientError
from headrace.protocol.ids import TopicPartition


@click.command("delete-offsets")
@click.argument("name", shell_complete=completing.groups)
@click.option(
    "--topic",
    "topics",
    metavar="T[:0,1]",
    multiple=True,
    required=True,
    shell_complete=completing.topics,
    help="All of it, or some partitions; repeat for more.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@options
@click.pass_obj
def delete_offsets(session: Session, name: str, topics: Sequence[str], *, yes: bool) -> None:
    """Forget what a group has committed:  headrace group delete-offsets billing --topic orders

    Refused for topics that members of the group read just now. Who reads them next begins anew.
    """
    scope = parse_topics(topics)
    (group,) = session.groups.describe([name])
    places = [
        TopicPartition(each.topic, each.partition)
        for each in group.partitions
        if each.committed is not None
        and each.topic in scope
        and (not scope[each.topic] or each.partition in scope[each.topic])
    ]
    if not places:
        raise ClientError(f"group {name} has committed nothing for {', '.join(topics)}")
    if not yes:
        _ask(name, places)
    session.groups.delete_offsets(name, places)
    deleted = [{"topic": place.topic, "partition": place.partition} for place in places]
    session.show({"group": name, "deleted": deleted}, f"{name} has forgotten {', '.join(map(str, places))}")


def _ask(name: str, places: Sequence[TopicPartition]) -> None:
    """Return if it is wanted."""
    what = f"what {name} has committed for {count(len(places), 'partition')}"
    ask(f"Forget {what}?", allowed=f"to forget {what}", declined="nothing was changed")
