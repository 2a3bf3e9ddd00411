"""The ACLs of znodes with `zookeeper.set.acl=true`, as in Kafka's ZkData.

Only who created a znode may change it, and everybody may read it, except those with secrets or with the rules
of authorization.
"""

from collections.abc import Sequence
from typing import Any, Final

from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

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
