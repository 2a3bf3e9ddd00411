"""ZooKeeper's tree written down naively: one dictionary, copied whole before every multi."""

import copy
from dataclasses import dataclass, field
from typing import Any

NO_NODE, BAD_VERSION, NO_CHILDREN_FOR_EPHEMERALS, NODE_EXISTS, NOT_EMPTY = -101, -103, -108, -110, -111


class NaiveError(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class NaiveNode:
    data: bytes
    owner: int
    version: int = 0
    changes: int = 0  # of the list of children: what clients see as cversion
    creations: int = 0  # what sequence numbers count
    children: list[str] = field(default_factory=list)


class NaiveZooKeeper:
    def __init__(self) -> None:
        self.nodes = {"/": NaiveNode(b"", 0)}

    def create(self, session: int, path: str, data: bytes, flags: int) -> str:
        parent = self._get(path.rpartition("/")[0] or "/")
        if flags & 2:
            path += str(parent.creations).zfill(10)
        if path in self.nodes:
            raise NaiveError(NODE_EXISTS)
        if parent.owner:
            raise NaiveError(NO_CHILDREN_FOR_EPHEMERALS)
        self.nodes[path] = NaiveNode(data, session if flags & 1 else 0)
        parent.children.append(path.rpartition("/")[2])
        parent.creations += 1
        parent.changes += 1
        return path

    def delete(self, path: str, version: int) -> None:
        node = self._get(path)
        self._check(node, version)
        if node.children:
            raise NaiveError(NOT_EMPTY)
        self._remove(path)

    def set(self, path: str, data: bytes, version: int) -> int:
        node = self._get(path)
        self._check(node, version)
        node.data = data
        node.version += 1
        return node.version

    def check(self, path: str, version: int) -> None:
        self._check(self._get(path), version)

    def close(self, session: int) -> None:
        for path in [path for path, node in self.nodes.items() if node.owner == session]:
            self._remove(path)

    def multi(self, operations: list[tuple[Any, ...]]) -> list[Any]:
        """Results of all, or error codes of all."""
        before = copy.deepcopy(self.nodes)
        results: list[Any] = []
        for position, (name, *arguments) in enumerate(operations):
            try:
                results.append(getattr(self, name)(*arguments))
            except NaiveError as error:
                self.nodes = before
                return [0] * position + [error.code] + [-2] * (len(operations) - position - 1)
        return results

    def _get(self, path: str) -> NaiveNode:
        if path not in self.nodes:
            raise NaiveError(NO_NODE)
        return self.nodes[path]

    def _check(self, node: NaiveNode, version: int) -> None:
        if version not in (-1, node.version):
            raise NaiveError(BAD_VERSION)

    def _remove(self, path: str) -> None:
        parent = self.nodes[path.rpartition("/")[0] or "/"]
        del self.nodes[path]
        parent.children.remove(path.rpartition("/")[2])
        parent.changes += 1
