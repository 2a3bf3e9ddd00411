"""A group whose members are threads of the test: they join, leave, and settle."""

from types import TracebackType
from typing import Self

from wire.group_stories.groups import STABLE, Groups
from wire.group_stories.kinds import Kind
from wire.group_stories.ledger import Ledger
from wire.group_stories.members import Member
from wire.group_stories.reading import Place
from wire.group_stories.topics import new_topic
from wire.group_stories.waiting import eventually
from wire.requests import fresh_name


class Company:
    """One group of one topic. Leaving the block closes who is there, and finds that no two owned the same."""

    def __init__(self, bootstrap: str, *, partitions: int, records: int = 0) -> None:
        self.bootstrap = bootstrap
        self.group = fresh_name("company")
        self.topic = new_topic(bootstrap, partitions=partitions, records=records)
        self.ledger = Ledger()
        self.members: list[Member] = []
        self.groups = Groups(bootstrap)
        self._partitions = partitions

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self.members:
            member.stop()
        if kind is None:
            for member in list(self.members):
                self.leave(member)
            assert self.ledger.overlaps == []

    def join(self, kind: Kind) -> Member:
        """A new member, which has its share when the group has settled."""
        member = Member(
            fresh_name("member"),
            lambda watcher: kind.open(self.bootstrap, self.group, [self.topic], watcher),
            self.ledger,
        )
        self.members.append(member)
        return member

    def leave(self, member: Member) -> None:
        """Close a member, and return when it is closed; the others have not settled yet."""
        self.members.remove(member)
        member.close()

    def settle(self) -> None:
        """Return once all partitions are owned, the shares are fair, and describe tells the same."""
        eventually(self._settled, tell=lambda: [self._errors(), *self.ledger.history()[-20:]])

    def _settled(self) -> bool:
        owned = self.owned()
        if sum(map(len, owned)) != self._partitions or len(owned[0]) - len(owned[-1]) > 1:
            return False
        described = self.groups.describe(self.group)
        return described.state is STABLE and set(self.groups.assignments(self.group)) == set(owned)

    def owned(self) -> list[frozenset[Place]]:
        """What each member has by its own account, the largest share first."""
        return sorted((member.owned for member in self.members), key=len, reverse=True)

    def _errors(self) -> list[Exception]:
        return [member.error for member in self.members if member.error is not None]
