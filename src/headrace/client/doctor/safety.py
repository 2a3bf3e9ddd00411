"""Findings about the safety of records, and about free space. Pure: facts in, findings out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from headrace.client.cluster.log_dirs import LogDir
from headrace.client.doctor.diagnosis import Area, Finding, gibibytes, some

FULL_SHARE: Final = 0.05
TIGHT_SHARE: Final = 0.15
SAFE_REPLICAS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSafety:
    """The replication factor of a topic, and its min.insync.replicas."""

    replicas: int
    min_in_sync: int
    unclean: bool


def examine_disks(area: Area, log_dirs: Mapping[int, tuple[LogDir, ...]]) -> Iterator[Finding]:
    """Yield findings about free disk space."""
    lowest: tuple[float, str] | None = None
    for broker_id, directories in sorted(log_dirs.items()):
        for each in directories:
            where = f"broker {broker_id}, {each.path}"
            if each.error is not None:
                yield area.problem("disk", f"{where}: {each.error}.", "See its log, and the disk.")
            if each.total_bytes and each.usable_bytes is not None:
                share = each.usable_bytes / each.total_bytes
                said = f"{where}: {gibibytes(each.usable_bytes)} of {gibibytes(each.total_bytes)} are free"
                lowest = min(lowest or (share, said), (share, said))
    if lowest is None:
        return
    share, said = lowest
    do = "Make room, lower retention.ms of large topics, or move partitions with `headrace cluster reassign`."
    if share < FULL_SHARE:
        yield area.problem("disk", f"{said}: it is nearly full, and a broker stops when it is.", do)
    elif share < TIGHT_SHARE:
        yield area.warning("disk", f"{said}.", do)
    else:
        yield area.ok("disk", f"The fullest is {said}.")


def examine_copies(area: Area, brokers: int, topics: Mapping[str, TopicSafety]) -> Iterator[Finding]:
    """Yield findings about whether records survive the loss of a broker."""
    if brokers == 1:
        yield area.ok("copies", "There is one broker: what is on its disk is all there is.")
        return
    single = [name for name, each in sorted(topics.items()) if each.replicas == 1]
    weak = [
        name
        for name, each in sorted(topics.items())
        if each.replicas >= SAFE_REPLICAS and each.min_in_sync == 1 and not name.startswith("__")
    ]
    unclean = [name for name, each in sorted(topics.items()) if each.unclean]
    if single:
        yield area.warning(
            "copies",
            f"{some(single)} is on one broker only: it is gone while that is down, and lost with its disk.",
            "headrace cluster reassign --topic NAME --to 1,2,3; new ones: default.replication.factor=3",
        )
    if weak:
        yield area.warning(
            "min.insync.replicas",
            f"{some(weak)} has min.insync.replicas=1: acks=all is satisfied by one copy.",
            "headrace config set topic NAME min.insync.replicas=2",
        )
    if unclean:
        yield area.warning(
            "unclean elections",
            f"{some(unclean)} may be led by a replica that lacks acknowledged records.",
            "headrace config set topic NAME unclean.leader.election.enable=false",
        )
    if not single and not weak and not unclean:
        yield area.ok("copies", "Every topic is on several brokers, and acks=all means more than one copy.")
