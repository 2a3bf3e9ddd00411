"""The ACLs of znodes that hold secrets, and of all others."""

import pytest
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from headrace.coordination.znode_acls import acl_of


@pytest.mark.parametrize(
    "path",
    [
        "/config/users",
        "/config/users/alice",
        "/config/users/alice/clients/app",
        "/config/brokers/1",
        "/delegation_token/tokens/x",
        "/kafka-acl/Topic/orders",
        "/kafka-acl-extended/prefixed/Topic/orders",
        "/kafka-acl-changes",
    ],
)
def test_secrets_are_for_the_creator_alone(path: str) -> None:
    assert acl_of(path, set_acl=True) == tuple(CREATOR_ALL_ACL)
    assert acl_of(path, set_acl=False) == tuple(OPEN_ACL_UNSAFE)


@pytest.mark.parametrize("path", ["/", "/config", "/config/topics/orders", "/brokers/ids/1", "/controller"])
def test_everybody_may_read_the_others(path: str) -> None:
    assert acl_of(path, set_acl=True) == (*CREATOR_ALL_ACL, *READ_ACL_UNSAFE)
