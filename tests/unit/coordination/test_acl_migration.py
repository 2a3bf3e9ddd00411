"""The traversal of a tree of znodes in batches."""

import asyncio
from typing import cast

from headrace.coordination.session import ZooKeeperSession
from headrace.coordination.znode_acls import ROOTS, TOGETHER, reset_acls
from headrace.coordination.znodes import PERSISTENT_PATHS


class Tree:
    """Znodes in memory; `deleted` ones are in the lists of children only."""

    def __init__(self, children: dict[str, list[str]], deleted: frozenset[str] = frozenset()) -> None:
        self._children = children
        self._deleted = deleted
        self.reset: list[tuple[str, bool]] = []
        self.under_way = self.most_under_way = 0

    async def reset_acl(self, path: str, *, protect: bool) -> bool:
        self.under_way += 1
        self.most_under_way = max(self.under_way, self.most_under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        if path in self._deleted or path not in self._children:
            return False
        self.reset.append((path, protect))
        return True

    async def children(self, path: str) -> list[str]:
        await asyncio.sleep(0)
        return self._children.get(path, [])


def run(tree: Tree, *, protect: bool) -> int:
    return asyncio.run(reset_acls(cast("ZooKeeperSession", tree), protect=protect))


def test_every_znode_is_visited_once_in_bounded_batches() -> None:
    topics = [f"t{number}" for number in range(1000)]
    children = {
        "/brokers": ["topics"],
        "/brokers/topics": topics,
        "/controller": [],
        "/other": ["x"],
        "/other/x": [],
    }
    for topic in topics:
        children[f"/brokers/topics/{topic}"] = ["partitions"]
        children[f"/brokers/topics/{topic}/partitions"] = []
    tree = Tree(children)

    assert run(tree, protect=True) == 2003
    assert sorted(tree.reset) == sorted((path, True) for path in children if not path.startswith("/other"))
    assert tree.most_under_way <= TOGETHER


def test_a_znode_that_is_deleted_meanwhile_is_skipped() -> None:
    tree = Tree({"/config": ["a", "b"], "/config/a": [], "/config/b": []}, frozenset({"/config/a"}))

    assert run(tree, protect=False) == 2
    assert sorted(tree.reset) == [("/config", False), ("/config/b", False)]


def test_the_roots_have_all_znodes_of_brokers() -> None:
    assert {f"/{path.split('/')[1]}" for path in PERSISTENT_PATHS} <= set(ROOTS)
