"""What stories of both protocols in one group have in common."""

from compat.group_conversations.classic import Member, assignment
from compat.group_conversations.consumer import Consumer
from compat.group_conversations.desk import Desk
from compat.group_conversations.talk import Talk


def upgraded(a: Member, b: Consumer) -> None:
    """A classic group of one member, which has everything, and a consumer that joins it."""
    a.enter()
    a.sync({a: assignment(three=[0, 1, 2])})
    b.join()


def look(talk: Talk) -> None:
    """See the group as either protocol shows it."""
    desk = Desk(talk)
    desk.describe_consumers("g")
    desk.describe("g")
    desk.list()
