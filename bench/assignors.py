"""How long the uniform and the range assignor take, from an empty group to a small change.

.venv/bin/python bench/assignors.py [--members 1000] [--topics 100] [--partitions 10]

`alike` members subscribe to every topic, `mixed` ones each to a random half of them.
"""

import argparse
import random
import time
from collections.abc import Mapping

from headrace.coordinators.group.assignors import ASSIGNORS, Assignment, Assignor, AssignorMember

Group = dict[str, AssignorMember]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--members", type=int, default=1000)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=10)
    options = parser.parse_args()
    partitions = {number.to_bytes(16, "big"): options.partitions for number in range(options.topics)}
    for name, assign in ASSIGNORS.items():
        for kind in ("alike", "mixed"):
            print(f"{name:8} {kind}:", ", ".join(story(assign, kind, options.members, partitions)))


def story(assign: Assignor, kind: str, count: int, partitions: Mapping[bytes, int]) -> list[str]:
    """What happens to one group: it starts, one member leaves, one joins, half as many join."""
    lottery = random.Random(1)
    figures = []

    def newcomers(number: int) -> Group:
        topics = sorted(partitions)
        share = len(topics) if kind == "alike" else (len(topics) + 1) // 2
        names = [f"member-{lottery.getrandbits(64):016x}" for _ in range(number)]
        return {name: AssignorMember(frozenset(lottery.sample(topics, share)), {}) for name in names}

    def timed(what: str, group: Group) -> Group:
        start = time.perf_counter()
        assigned = assign(group, partitions)
        took_ms = 1000 * (time.perf_counter() - start)
        figures.append(f"{what} {took_ms:.0f} ms ({moves(group, assigned)} moved)")
        return {name: member._replace(owned=assigned[name]) for name, member in group.items()}

    group = timed("start", newcomers(count))
    group.pop(min(group))
    group = timed("one leaves", group)
    group = timed("one joins", group | newcomers(1))
    timed("half as many join", group | newcomers(count // 2))
    return figures


def moves(group: Group, assigned: Mapping[str, Assignment]) -> int:
    """How many partitions have an owner that they did not have before."""
    return sum(
        len(held - member.owned.get(topic, frozenset()))
        for name, member in group.items()
        for topic, held in assigned[name].items()
    )


if __name__ == "__main__":
    main()
