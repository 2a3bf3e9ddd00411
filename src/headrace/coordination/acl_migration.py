"""The ACLs of existing znodes, after `zookeeper.set.acl` was turned on or off (Kafka's
zookeeper-security-migration).
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from headrace.coordination.session import ZooKeeperSession
from headrace.coordination.znode_acls import ROOTS

TOGETHER: Final = 64  # znodes whose ACLs are set at a time


async def reset_acls(session: ZooKeeperSession, *, protect: bool, roots: Sequence[str] = ROOTS) -> int:
    """Give every znode of the brokers the ACL that a new one would have; return the number of znodes.

    The tree is traversed in depth first order, in batches, so the memory is bounded by the children of the
    znodes on one path, not by the size of the tree. A znode that is deleted meanwhile is skipped. The user of
    the session has to be the brokers' one: it is the owner of protected znodes.
    """
    count, waiting = 0, list(roots)
    while waiting:
        batch, waiting = waiting[-TOGETHER:], waiting[:-TOGETHER]
        done = await asyncio.gather(*(session.reset_acl(path, protect=protect) for path in batch))
        found = [path for path, exists in zip(batch, done, strict=True) if exists]
        count += len(found)
        children = await asyncio.gather(*(session.children(path) for path in found))
        waiting += [f"{path}/{name}" for path, names in zip(found, children, strict=True) for name in names]
    return count
