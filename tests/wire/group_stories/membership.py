"""Stories of members that come and go, for every client and assignor: who owns what, and who says so."""

import random
from pathlib import Path
from typing import Final

from wire.group_stories.company import Company
from wire.group_stories.groups import EMPTY, Groups
from wire.group_stories.kinds import Kind
from wire.group_stories.processes import WorkerProcess, killed_in_the_end
from wire.group_stories.topics import all_of, new_topic
from wire.group_stories.waiting import eventually
from wire.requests import fresh_name

PARTITIONS: Final = 6
MOST_MEMBERS: Final = 4
STEPS: Final = 8


def members_come_and_go(bootstrap: str, kind: Kind, seed: int) -> None:
    """No partition ever has two owners, and whoever is there in the end has a fair share."""
    chance = random.Random(seed)
    with Company(bootstrap, partitions=PARTITIONS) as company:
        for _ in range(STEPS):
            present = len(company.members)
            if present == 0 or (present < MOST_MEMBERS and chance.random() < 0.6):
                company.join(kind)
            else:
                company.leave(chance.choice(company.members))
            if company.members and chance.random() < 0.5:
                company.settle()  # else the next one comes or goes amid the rebalance
        company.join(kind)
        company.settle()
    eventually(lambda: company.groups.state(company.group) is EMPTY)


def more_members_than_partitions_leave_some_idle(bootstrap: str, kind: Kind) -> None:
    with Company(bootstrap, partitions=2) as company:
        for _ in range(3):
            company.join(kind)
        company.settle()
        assert [len(owned) for owned in company.owned()] == [1, 1, 0]

        company.leave(next(member for member in company.members if member.owned))
        company.settle()
        assert [len(owned) for owned in company.owned()] == [1, 1]


def a_member_that_closes_is_replaced_at_once(bootstrap: str, kind: Kind) -> None:
    """Its session would go on for a minute, and no test waits that long."""
    with Company(bootstrap, partitions=2) as company:
        leaving = company.join(kind)
        company.join(kind)
        company.settle()
        company.leave(leaving)
        company.settle()


def a_member_that_is_killed_is_replaced_after_its_session(
    bootstrap: str, kind: Kind, directory: Path
) -> None:
    """It says nothing when it goes, and nobody but the broker's clock knows."""
    group, topic = fresh_name("bereft"), new_topic(bootstrap, partitions=4)
    groups = Groups(bootstrap)
    with killed_in_the_end([]) as workers:
        for name in ("victim", "heir"):
            workers.append(WorkerProcess(kind, bootstrap, group, topic, directory / name))
        victim, heir = workers
        eventually(lambda: len(victim.owned) == len(heir.owned) == 2, tell=lambda: [victim.diary, heir.diary])

        victim.kill()

        eventually(lambda: heir.owned == all_of(topic, 4), tell=lambda: heir.diary)
        assert groups.assignments(group) == [all_of(topic, 4)]
        heir.close()
