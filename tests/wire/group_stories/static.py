"""Stories of static members, who keep their place while they are away: `group.instance.id`."""

from typing import Final

from wire.group_stories.company import Company
from wire.group_stories.kinds import Kind
from wire.group_stories.waiting import eventually

NAMES: Final = ("anna", "bert", "carl")


def a_static_member_comes_back_unnoticed(bootstrap: str, kind: Kind) -> None:
    """It gets what it had, and the others hear nothing: no rebalance, whoever of them it is."""
    with Company(bootstrap, partitions=6) as company:
        members = {name: company.join(kind.but(group_instance_id=name)) for name in NAMES}
        company.settle()
        for name in NAMES:
            had = members[name].owned
            others = [member for other, member in members.items() if other != name]
            before = [company.ledger.history(other.name) for other in others]

            company.leave(members[name])
            members[name] = back = company.join(kind.but(group_instance_id=name))
            eventually(lambda back=back, had=had: back.owned == had, tell=company.ledger.history)  # type: ignore[misc]

            company.settle()
            assert [company.ledger.history(other.name) for other in others] == before
