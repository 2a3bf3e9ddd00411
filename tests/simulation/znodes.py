"""ZooKeeper's tree: every change is one step, has a number, and is seen by whoever looks after it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from headrace.coordination.session import ANY_VERSION, Check, Conflict, Create, Delete, Operation, Set, Znode

Watch = tuple[int, int]  # a session, and the number that it knows the watch by


@dataclass(slots=True)
class _Node:
    data: bytes
    created_zxid: int
    modified_zxid: int
    owner: int = 0
    version: int = 0
    children: dict[str, None] = field(default_factory=dict)


class Tree:
    """Znodes by path. `fired` is called with every watch that a change has tripped, in the change's step."""

    def __init__(self, fired: Callable[[Watch], None]) -> None:
        self.zxid = 0
        self.on_change: Callable[[str, Znode | None, int], None] = lambda _path, _node, _session: None
        self._nodes: dict[str, _Node] = {"/": _Node(b"", 0, 0)}
        self._fired = fired
        self._data_watches: dict[str, dict[Watch, None]] = {}
        self._child_watches: dict[str, dict[Watch, None]] = {}

    # -- reading -------------------------------------------------------------------------------

    def get(self, path: str, watch: Watch | None = None) -> Znode | None:
        """What is there; `watch` is tripped by a change of it, also by its coming to be."""
        if watch is not None:
            self._data_watches.setdefault(path, {})[watch] = None
        node = self._nodes.get(path)
        if node is None:
            return None
        return Znode(node.data, node.version, node.created_zxid, node.owner, node.modified_zxid)

    def children(self, path: str, watch: Watch | None = None) -> list[str]:
        node = self._nodes.get(path)
        if node is None:
            return []
        if watch is not None:
            self._child_watches.setdefault(path, {})[watch] = None
        return list(node.children)

    # -- writing -------------------------------------------------------------------------------

    def change(self, operations: Sequence[Operation], session: int) -> None:
        """All of `operations` or none; Conflict if one cannot be done."""
        self._check(operations)
        self.zxid += 1
        for operation in operations:
            match operation:
                case Create(path, data, ephemeral):
                    self._create(path, data, session if ephemeral else 0)
                case Set(path, data, _):
                    node = self._nodes[path]
                    node.data, node.modified_zxid = data, self.zxid
                    node.version += 1
                    self._trip(self._data_watches, path)
                case Delete(path, _):
                    self._delete(path)
                case Check():
                    continue
            self.on_change(operation.path, self.get(operation.path), session)

    def _check(self, operations: Sequence[Operation]) -> None:
        made: set[str] = set()
        for operation in operations:
            path = operation.path
            if isinstance(operation, Create):
                parent = path.rpartition("/")[0] or "/"
                if path in self._nodes or (parent not in self._nodes and parent not in made):
                    raise Conflict(f"{path} exists, or has no parent", path)
                made.add(path)
                continue
            node = self._nodes.get(path)
            if node is None or operation.version not in {ANY_VERSION, node.version}:
                raise Conflict(f"{path} is not at version {operation.version}", path)

    def _create(self, path: str, data: bytes, owner: int) -> None:
        self._nodes[path] = _Node(data, self.zxid, self.zxid, owner)
        parent, _, name = path.rpartition("/")
        self._nodes[parent or "/"].children[name] = None
        self._trip(self._data_watches, path)
        self._trip(self._child_watches, parent or "/")

    def _delete(self, path: str) -> None:
        assert not self._nodes[path].children, path
        del self._nodes[path]
        parent, _, name = path.rpartition("/")
        del self._nodes[parent or "/"].children[name]
        self._trip(self._data_watches, path)
        self._trip(self._child_watches, path)
        self._trip(self._child_watches, parent or "/")

    def ensure(self, path: str) -> None:
        """Make `path`, and what is above it, if it is missing."""
        at = ""
        for name in path.strip("/").split("/"):
            at = f"{at}/{name}"
            if at not in self._nodes:
                self.change([Create(at, b"")], 0)

    def end_session(self, session: int) -> None:
        """Remove what goes with a session, in one step."""
        paths = [path for path, node in self._nodes.items() if node.owner == session]
        if paths:
            self.change([Delete(path) for path in paths], session)

    # -- watching ------------------------------------------------------------------------------

    def _trip(self, watches: dict[str, dict[Watch, None]], path: str) -> None:
        for watch in watches.pop(path, ()):
            self._fired(watch)

    def forget_watches(self, session: int) -> None:
        for watches in (self._data_watches, self._child_watches):
            for path in list(watches):
                for watch in [each for each in watches[path] if each[0] == session]:
                    del watches[path][watch]
