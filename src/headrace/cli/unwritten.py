"""Why records were not written, where librdkafka does not say: the cluster is asked."""

from typing import Final

from headrace.cli.session import Session
from headrace.cli.texts import count
from headrace.client.errors import ClientError, Unreachable

_BY_OFFSET: Final = "headrace.append.expected.offset"


def explained(session: Session, topic: str, error: ClientError) -> ClientError:
    """What is known of why records to `topic` were not taken; `error` itself if it is nothing more."""
    try:
        found = (_late if isinstance(error, Unreachable) else _refused)(session, topic)
    except ClientError:
        return error
    return found or error


def _refused(session: Session, topic: str) -> ClientError | None:
    """Not because of the record: the topic takes none from a client such as this."""
    if session.admin.describe_topic(topic).internal:
        return ClientError(f"{topic} is the cluster's own: only brokers write to it")
    configs = {each.name: each.value for each in session.admin.topic_configs(topic)}
    if configs.get(_BY_OFFSET) != "true":
        return None
    return ClientError(
        f"{topic} takes only records that name their offset ({_BY_OFFSET}=true), which the schema registry's "
        "do: register schemas with `headrace schema register`"
    )


def _late(session: Session, topic: str) -> ClientError | None:
    """Why they were not taken in time, if it is not that nobody is there."""
    status = session.cluster.status()
    without = [each for each in (*status.offline, *status.leaderless) if each.topic == topic]
    for each in without:
        return ClientError(
            f"{each.topic_partition} has no leader: `headrace cluster status` says which brokers lack"
        )
    for each in status.under_min_isr:
        if each.topic == topic:
            return ClientError(
                f"{each.topic_partition} takes nothing with acks=all: "
                f"{count(len(each.in_sync), 'replica')} in sync, "
                f"and min.insync.replicas is {each.min_in_sync}"
            )
    return None
