"""One znode. A value: a change makes a new one, so a copy of the dictionary is a consistent snapshot."""

from struct import Struct
from typing import Final, NamedTuple

from headrace.coordination.embedded.acl import AclList

CONTAINER: Final = -(1 << 63)
"""The owner of a container: a node that goes away once its last child has."""

STAT: Final = Struct(">qqqqiiiqiiq")


class Node(NamedTuple):
    """What is stored, beside the path; `cversion` counts the children ever created."""

    data: bytes | None
    acl: AclList
    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    owner: int  # the session of an ephemeral node, CONTAINER, or 0
    pzxid: int
    num_children: int

    @property
    def is_ephemeral(self) -> bool:
        return self.owner not in (0, CONTAINER)

    def stat(self) -> bytes:
        """The eleven fields clients get.

        Their cversion counts deletions too. ZooKeeper derives it as we do: each creation and each deletion
        is one change, and creations minus children still there are the deletions.
        """
        return STAT.pack(
            self.czxid,
            self.mzxid,
            self.ctime,
            self.mtime,
            self.version,
            int32(2 * self.cversion - self.num_children),
            self.aversion,
            self.owner,
            len(self.data) if self.data else 0,
            self.num_children,
            self.pzxid,
        )


def int32(number: int) -> int:
    """`number` as Java's int would hold it: versions wrap around after two thousand million changes."""
    return (number + 0x80000000 & 0xFFFFFFFF) - 0x80000000
