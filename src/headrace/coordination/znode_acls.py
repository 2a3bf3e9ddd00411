"""The ACLs of znodes with `zookeeper.set.acl=true`, as in Kafka's ZkData.

Only who created a znode may change it, and everybody may read it, except those with secrets or with the rules
of authorization.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

if TYPE_CHECKING:
    from headrace.coordination.session import ZooKeeperSession

TOGETHER: Final = 64  # znodes whose ACLs are set at a time

SENSITIVE: Final = (
    "/config/users",  # SCRAM credentials
    "/cluster/secret",
    "/config/brokers",  # dynamic settings, passwords among them
    "/delegation_token",
    "/kafka-acl",  # and /kafka-acl-extended, /kafka-acl-changes: who may do what
)


ROOTS: Final = (
    "/admin",
    "/brokers",
    "/cluster",
    "/config",
    "/consumers",  # of Kafka's old consumers; brokers do not use it
    "/controller",
    "/controller_epoch",
    "/delegation_token",
    "/isr_change_notification",
    "/kafka-acl",
    "/kafka-acl-changes",
    "/kafka-acl-extended",
    "/kafka-acl-extended-changes",
    "/latest_producer_id_block",
    "/log_dir_event_notification",  # Kafka's
    "/schemas",
)
"""Everything that brokers create in ZooKeeper is one of these znodes, or below one of them."""


def is_sensitive(path: str) -> bool:
    return path.startswith(SENSITIVE)


def acl_of(path: str, *, set_acl: bool) -> Sequence[Any]:
    """Return the ACL for a new znode, in kazoo's type."""
    if not set_acl:
        return tuple(OPEN_ACL_UNSAFE)
    return tuple(CREATOR_ALL_ACL) if is_sensitive(path) else (*CREATOR_ALL_ACL, *READ_ACL_UNSAFE)


async def reset_acls(session: "ZooKeeperSession", *, protect: bool, roots: Sequence[str] = ROOTS) -> int:
    """Give every znode of the brokers the ACL that a new one would have; return the number of znodes.

    This is for `zookeeper.set.acl` that was turned on or off (Kafka's zookeeper-security-migration).

    The tree is traversed in depth first order, in batches, so the memory is bounded by the children of the
    znodes on one path, not by the size of the tree. A znode that is deleted meanwhile is skipped. The user of
    the session has to be the brokers' one: it is the owner of protected znodes.
    """
    count, waiting = 0, list(roots)
    while waiting:
        batch, waiting = waiting[-TOGETHER:], waiting[:-TOGETHER]
        done = await asyncio.gather(*(session.reset_acl(path, protect=protect) for path in batch))
        paths = [path for path, exists in zip(batch, done, strict=True) if exists]
        count += len(paths)
        children = await asyncio.gather(*(session.children(path) for path in paths))
        waiting += [f"{path}/{name}" for path, names in zip(paths, children, strict=True) for name in names]
    return count
