"""Stories of subscriptions that match more than there was at first."""

from confluent_kafka.admin import AdminClient, NewPartitions

from wire.confluent import settings
from wire.group_stories.kinds import Kind
from wire.group_stories.ledger import Ledger
from wire.group_stories.members import Member
from wire.group_stories.topics import all_of, new_topic, write
from wire.group_stories.waiting import TIMEOUT_S, eventually
from wire.requests import fresh_name


def a_pattern_picks_up_new_topics(bootstrap: str, kind: Kind) -> None:
    """What matches is read, made before or after the subscription; what does not, is not."""
    prefix = fresh_name("pattern")
    ledger = Ledger()
    early = new_topic(bootstrap, partitions=2, records=5, prefix=f"{prefix}-early")
    new_topic(bootstrap, partitions=2, records=5, prefix=f"not-{prefix}")
    pattern = f"^{prefix}-.*"

    member = Member("only", lambda watcher: kind.open(bootstrap, prefix, [pattern], watcher), ledger)
    eventually(lambda: member.owned == all_of(early, 2), tell=lambda: (member.error, ledger.history()))
    late = new_topic(bootstrap, partitions=3, records=5, prefix=f"{prefix}-late")
    eventually(
        lambda: member.owned == all_of(early, 2) | all_of(late, 3),
        tell=lambda: (member.error, ledger.history()),
    )
    eventually(lambda: len(member.reads) >= 25, tell=lambda: member.reads)
    member.close()

    assert {read.place for read in member.reads} == all_of(early, 2) | all_of(late, 3)


def added_partitions_are_assigned(bootstrap: str, kind: Kind) -> None:
    topic, ledger = new_topic(bootstrap, partitions=1), Ledger()
    member = Member("only", lambda watcher: kind.open(bootstrap, topic, [topic], watcher), ledger)
    eventually(lambda: member.owned == all_of(topic, 1), tell=lambda: (member.error, ledger.history()))

    admin = AdminClient(settings(bootstrap))
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(timeout=TIMEOUT_S)

    eventually(lambda: member.owned == all_of(topic, 3), tell=lambda: (member.error, ledger.history()))
    write(bootstrap, topic, 2, range(5))
    eventually(lambda: len(member.reads) == 5, tell=lambda: member.reads)
    member.close()
