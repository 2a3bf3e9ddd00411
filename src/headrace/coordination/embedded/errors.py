"""ZooKeeper's error numbers, and the refusal that carries one."""

from enum import IntEnum


class ErrorCode(IntEnum):
    """The numbers of ZooKeeper's KeeperException.Code, as far as one node has a use for them."""

    OK = 0
    RUNTIME_INCONSISTENCY = -2
    MARSHALLING_ERROR = -5
    UNIMPLEMENTED = -6
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112
    INVALID_ACL = -114
    AUTH_FAILED = -115
    NO_WATCHER = -121
    QUOTA_EXCEEDED = -125


class Refused(Exception):
    """The request cannot be granted; the client gets `code`, nothing has changed."""

    def __init__(self, code: ErrorCode, about: str = "") -> None:
        super().__init__(f"{code.name} {about}".rstrip())
        self.code = code


class MalformedRequest(Exception):
    """The bytes are not what ZooKeeper's protocol says."""
