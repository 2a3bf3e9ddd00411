"""How long a producer and a consumer pause when a broker is killed with -9, and that nothing gets lost."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Final

from compare.checked import Reader, Writer, problems
from compare.cluster import Cluster
from compare.table import Expected, Figures, Line

PARTITIONS: Final = 6
BEFORE: Final = 100  # records of each partition before the kill, and again after it
RECOVERY_S: Final = 90
_names: Final = (f"failover-{number}" for number in count())

Choose = Callable[[Cluster, str], int]


def leader(cluster: Cluster, topic: str) -> int:
    """A broker that leads partitions of the topic and is not the controller."""
    controller = cluster.controller()
    return next(each for each in cluster.spread(topic).leaders if each != controller)


def controller(cluster: Cluster, _topic: str) -> int:
    """The controller, which leads its share of the partitions as well."""
    return cluster.controller()


def pause(cluster: Cluster, choose: Choose) -> Figures:
    """One kill: a new topic, a load on it, a broker less, and the broker back again."""
    topic = next(_names)
    cluster.create_topic(topic, partitions=PARTITIONS)
    writer = Writer(cluster.bootstrap, topic, PARTITIONS)
    reader = Reader(cluster.bootstrap, topic, PARTITIONS)
    writer.start()
    reader.start()
    try:
        _await_progress(writer)
        victim = choose(cluster, topic)
        led = len(cluster.spread(topic).led_by(victim))
        cluster.kill(victim)
        _await_progress(writer)
    finally:
        writer.stop()
        reader.stop(writer.sent)
    found = problems(writer, reader)
    if found:
        raise RuntimeError(f"{cluster.name}: {len(found)} problems: {found[:5]}")
    cluster.start(victim)
    cluster.await_in_sync(topic, PARTITIONS)
    cluster.delete_topic(topic)
    return {"pause s": writer.gaps.longest, "reader pause s": reader.gaps.longest, "led": led}


def _await_progress(writer: Writer) -> None:
    """Return when every partition has taken some more of what is sent from now on."""
    wanted = {each: writer.sent[each] + BEFORE for each in range(PARTITIONS)}
    deadline = time.monotonic() + RECOVERY_S
    while any(writer.acknowledged(each) < number for each, number in wanted.items()):
        if writer.problems or time.monotonic() > deadline:
            raise TimeoutError(f"no progress after {RECOVERY_S} s: {writer.problems[:3]}")
        time.sleep(0.01)


def lines(*, quick: bool) -> Iterator[Line[Cluster]]:
    for who, choose in (("a leader", leader), ("the controller", controller)):
        yield Line(
            name=f"cluster kill -9 of {who}",
            run=partial(pause, choose=choose),
            warm_up=False,
            quick=choose is leader,
            rounds=1 if quick else 3,
            expected=[
                Expected(figure="pause s", at_most=2.0, absolute=True, beside="led"),
                Expected(figure="reader pause s"),
            ],
        )
