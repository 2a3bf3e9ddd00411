"""The story of a group that moves to the new protocol and back while it works: online migration."""

from typing import Final

from wire.group_stories.company import Company
from wire.group_stories.groups import CLASSIC, CONSUMER
from wire.group_stories.kinds import Kind
from wire.group_stories.members import Member
from wire.group_stories.reading import Place
from wire.group_stories.topics import all_of, write
from wire.group_stories.waiting import eventually

PARTITIONS: Final = 4
RECORDS: Final = 10  # a round, a partition


class Migration:
    """Rounds of records for a company whose members change between them; each record is read once."""

    def __init__(self, company: Company) -> None:
        self._company = company
        self._written = 0
        self._past: list[Member] = []  # who has left

    def round(self) -> None:
        """Have something written, and return once it is read and committed."""
        company, places = self._company, all_of(self._company.topic, PARTITIONS)
        more = range(self._written, self._written + RECORDS)
        for partition in range(PARTITIONS):
            write(company.bootstrap, company.topic, partition, more)
        self._written += RECORDS
        eventually(
            lambda: company.groups.committed(company.group) == dict.fromkeys(places, self._written),
            tell=lambda: (company.groups.committed(company.group), company.ledger.history()[-20:]),
        )

    def replace(self, leaving: list[Member], kind: Kind) -> list[Member]:
        """Let as many of another kind join, then the old ones leave one by one; a round follows each."""
        joined = [self._company.join(kind) for _ in leaving]
        self._company.settle()
        self.round()
        for member in leaving:
            self._company.leave(member)
            self._past.append(member)
            self._company.settle()
            self.round()
        return joined

    def reads(self) -> list[tuple[Place, int]]:
        members = self._past + self._company.members
        return sorted((read.place, read.offset) for member in members for read in member.reads)

    def everything(self) -> list[tuple[Place, int]]:
        places = sorted(all_of(self._company.topic, PARTITIONS))
        return [(place, offset) for place in places for offset in range(self._written)]


def a_group_migrates_and_comes_back(bootstrap: str, classic: Kind, consumer: Kind) -> None:
    with Company(bootstrap, partitions=PARTITIONS) as company:
        story = Migration(company)
        old = [company.join(classic) for _ in range(2)]
        company.settle()
        story.round()
        assert company.groups.describe(company.group).type is CLASSIC

        new = story.replace(old, consumer)
        assert company.groups.describe(company.group).type is CONSUMER

        story.replace(new, classic)
        assert company.groups.describe(company.group).type is CLASSIC
        assert story.reads() == story.everything()
