"""Topics that come and go during a conversation, and when the group coordinator has noticed."""

from compat.group_conversations.probe import PROBE, can_be_assigned
from compat.group_conversations.talk import Talk
from compat.group_conversations.topics import delete_topic, make_topic
from wire.raw import RawClient


def make(talk: Talk, name: str, partitions: int) -> str:
    """Make a topic, and return its full name when it can be assigned."""
    name, group = talk.called(name), talk.called(PROBE)
    with RawClient(talk.bootstrap) as client:
        talk.meet_topic(name, make_topic(client, name, partitions))
        talk.until(f"{name} can be assigned", lambda: can_be_assigned(client, name, group))
    return name


def delete(talk: Talk, name: str) -> None:
    """Delete a topic, and return when it cannot be assigned any more."""
    group = talk.called(PROBE)
    with RawClient(talk.bootstrap) as client:
        delete_topic(client, name)
        talk.until(f"{name} cannot be assigned", lambda: not can_be_assigned(client, name, group))
